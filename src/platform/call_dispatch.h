// Syscall User Dispatch (Linux 5.11): a thread's system calls come back to it as SIGSYS (si_code SYS_USER_DISPATCH),
// but for those made from one range of code, and for all of them while a byte of its own says so.
//
// Threads: each for itself; new threads, children and what is executed have none. Async-signal-safe.
// Lifetime: `selector` outlives the thread's last system call; where the kernel cannot read it, it ends the process.
// Limits: a thread that blocks SIGSYS, or has no handler of it, ends with its next call.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace spw::platform {

struct CodeRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

// The executable code of the object that has `address` in it, as one
// range. ENOENT: in none that is loaded. Not async-signal-safe.
Result<CodeRange> code_around(const void* address);

// False: the kernel has no such thing, or does not allow it.
bool dispatch_calls_of_this_thread(const CodeRange& passes, const void* selector);
// Tries it out. False, too, where libc's calls do not all come from one range: before glibc 2.34, which moved those of
// threads into libc.
bool can_dispatch_calls();

}  // namespace spw::platform
