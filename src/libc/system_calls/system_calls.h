// syscall(2): any system call by its number, with arguments that may be managed. It is what the library exports under
// that name, and what calls come to that were made without libc (dispatch.h).
//
//   reads, writes, messages        the functions that libc's are interposed with (transfers.h, remote_memory.h)
//   futex                          futex_calls.h
//   mmap and its kin               of managed addresses: mapping.h; what that cannot do is refused, and reaches no managed memory
//   actions and masks of signals   fault_signal.h, handlers.h
//   io_uring_setup, io_setup       refused with ENOSYS, and one warning, where threads serve their own faults: the kernel would touch memory when
//                                  there is none to serve it
//   what native_call.h knows       with copies of what its arguments point to
//   anything else                  with its arguments' blocks kept in memory, and again if it meets a missing page nevertheless
//
// A call whose arguments are native costs a look at its number and at each of them.
// Threads: any. Async-signal-safe as the interposed functions are. No point of cancellation, as system calls are none.
// Errors: the call's, -1 and errno.
#pragma once

#include "libc/system_calls/native_call.h"

namespace spw::libc {

// `given` is changed on the way.
long system_call(long number, CallArguments& given);

// Whether prctl(option) would take from the runtime what it needs: it
// is refused with EINVAL, as by a kernel that has it not.
bool is_refused_control(int option);

}  // namespace spw::libc
