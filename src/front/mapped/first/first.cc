// libspillway_first.so: gives the hint table (abi/hints.h) its addresses before any code of the process can test a hint.
//
// Templates of libstdc++ that a program instantiates take the place of the library's own copies in every library of the
// process. So code compiled with hints runs in constructors of libraries that know nothing of it, before the program's own
// and before libspillway's. This library is linked to be initialised first of all, before libc, and therefore uses nothing
// of libc but the wrapper of a system call.
//
// The table reads as zeros, so every hint and the switch say "go on". HintTable makes the parts writable that it writes.
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/hints.h"

extern "C" {

// 0, or the errno with which the table was refused; libspillway.so looks and reports.
__attribute__((visibility("default"))) int __spw_hint_table_error = ENOSYS;

__attribute__((constructor)) static void map_hint_table() {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  const long got = syscall(SYS_mmap, SPW_HINT_OFFSET, SPW_HINT_TABLE_BYTES, PROT_READ, kFlags, -1, 0L);
  if (got == static_cast<long>(SPW_HINT_OFFSET)) {
    __spw_hint_table_error = 0;
    (void)syscall(SYS_madvise, SPW_HINT_OFFSET, SPW_HINT_TABLE_BYTES, MADV_DONTDUMP);
  } else {
    __spw_hint_table_error = got == -1 ? errno : EEXIST;
    // Translated code reads the switch alone.
    (void)syscall(SYS_mmap, SPW_VERSION_SWITCH, SPW_GRANULE_BYTES, PROT_READ, kFlags, -1, 0L);
  }
}
}
