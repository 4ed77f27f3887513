#include "platform/call_dispatch.h"

#include <errno.h>
#include <link.h>
#include <linux/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "platform/machine.h"

namespace spw::platform {

namespace {

struct Search {
  uintptr_t address;
  CodeRange found;
};

// Of the object that has the address: from the first executable segment to the end of the last.
int look_at(dl_phdr_info* object, size_t, void* search_of) {
  auto& search = *static_cast<Search*>(search_of);
  CodeRange code{UINTPTR_MAX, 0};
  bool is_in_it = false;
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr, end = begin + segment.p_memsz;
    is_in_it |= search.address >= begin && search.address < end;
    if ((segment.p_flags & PF_X) != 0) code = {std::min(code.begin, begin), std::max(code.end, end)};
  }
  if (is_in_it) search.found = code;
  return is_in_it ? 1 : 0;
}

bool control(long mode, uintptr_t begin, uintptr_t bytes, const void* selector) {
  const int saved_errno = errno;
  const bool is_done = ::syscall(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, mode, begin, bytes, selector) == 0;
  errno = saved_errno;
  return is_done;
}

}  // namespace

Result<CodeRange> code_around(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address), {}};
  if (dl_iterate_phdr(&look_at, &search) == 0) return Status(ENOENT, "no code is loaded there");
  return search.found;
}

bool dispatch_calls_of_this_thread(const CodeRange& passes, const void* selector) {
  return control(PR_SYS_DISPATCH_ON, passes.begin, passes.end - passes.begin, selector);
}

bool can_dispatch_calls() {
  constexpr int kOneLibrary = 34;
  if (glibc_minor() < kOneLibrary) return false;
  static const uint8_t passes = 0;
  return control(PR_SYS_DISPATCH_ON, 0, 0, &passes) && control(PR_SYS_DISPATCH_OFF, 0, 0, nullptr);
}

}  // namespace spw::platform
