// libspillway_first.so: gives the hint table (abi/hints.h) its
// addresses before any code of the process can test a hint.
//
// Templates of libstdc++ that a program instantiates take the place of the library's own copies in every library of the
// process. So code compiled with hints runs in constructors of libraries that know nothing of it, before the program's
// own and before libspillway's. This library is linked to be initialised first of all, before libc, and therefore uses
// nothing of libc; its syscall() is libspillway's, which looks for libc's own.
//
// The table reads as zeros, so every hint and the switch say "go on".
// HintTable makes the parts writable that it writes.
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "abi/hints.h"

// An address, or -errno.
static long map_at(unsigned long address, unsigned long bytes) {
  constexpr long kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  long result = SYS_mmap;
  register long flags asm("r10") = kFlags;
  register long fd asm("r8") = -1;
  register long offset asm("r9") = 0;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(address), "S"(bytes), "d"(PROT_READ), "r"(flags), "r"(fd), "r"(offset)
               : "rcx", "r11", "memory");
  return result;
}
static void leave_out_of_dumps(unsigned long address, unsigned long bytes) {
  long result = SYS_madvise;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(address), "S"(bytes), "d"(MADV_DONTDUMP)
               : "rcx", "r11", "memory");
}

extern "C" {

// 0, or the errno with which the table was refused; libspillway.so looks and reports.
__attribute__((visibility("default"))) int __spw_hint_table_error = ENOSYS;

__attribute__((constructor)) static void map_hint_table() {
  const long got = map_at(SPW_HINT_OFFSET, SPW_HINT_TABLE_BYTES);
  if (got == static_cast<long>(SPW_HINT_OFFSET)) {
    __spw_hint_table_error = 0;
    leave_out_of_dumps(SPW_HINT_OFFSET, SPW_HINT_TABLE_BYTES);
  } else {
    __spw_hint_table_error = got < 0 ? static_cast<int>(-got) : EEXIST;
    // Translated code reads the switch alone.
    (void)map_at(SPW_VERSION_SWITCH, SPW_GRANULE_BYTES);
  }
}
}
