// System calls that the program makes without libc (instructions of its own, of other runtimes, of liburing and
// libaio), where the threads that fault serve themselves: the kernel would find the page of a managed argument missing,
// and say EFAULT. So it sends these calls back (platform/call_dispatch.h), and a handler of SIGSYS makes them as
// syscall(2) does (system_calls.h).
//
//   of code                          the kernel
//     of libc                        passes it: its functions are interposed, and whatever else it does is not about managed memory
//     of the runtime, and what it    passes it: the selector says so while the thread is inside (base/in_runtime.h)
//     calls while it is inside
//     of anything else               sends it back: the handler makes it from libc's code, and its result is in the registers when it returns
//
// Calls that cannot be made from a handler (a new thread on a stack of its own, vfork, the alternate stack) are made
// again by their own instruction, let pass; from the thread's next exit from the runtime on its calls are sent back
// again. A call to return from a handler goes on in libc's code that does the same.
//
// Who is dispatched: a thread, from when it may have to do with managed memory on: at its start, when it is given some,
// when it gives some to a function of libc, and at its first fault. That is not before memory is watched, nor where
// faults are served by others. The handler is called at an instruction of the program outside of the runtime: nothing
// of the runtime is held, and no lock of libc either, since libc's own calls are not sent back and the allocator is in
// the runtime (real.h). A lock of the loader's may be held: the handler looks no symbol up. It is at that place what a
// call of libc's function would be, and as async-signal-safe as that. Its signal is never blocked (fault_signal.h), it
// blocks none, and it may be interrupted, and left by a jump.
// Threads: any. Cost: some 30 ns a system call of a dispatched thread, and some microseconds for one that is sent back.
// Limits: a thread that began before memory was watched, and has had nothing to do with it,
// gets EFAULT; so does one whose thread-local memory is managed, which the kernel has to read
// at each call. Calls of the kernel's page of time functions that need a system call (clocks of
// processor time) are sent back. Children have no dispatch; they have no managed memory either.
#pragma once

#include "base/atomic.h"
#include "base/in_runtime.h"
#include "base/status.h"

namespace spw::libc {

namespace detail {
extern Atomic<bool> threads_serve_faults;
extern Atomic<bool> dispatches;
void dispatch_this_thread(bool returns_to_its_mask);
}  // namespace detail

// Before memory is watched, once. Without it, and where the kernel has no dispatch, nothing is ever sent back.
Status prepare_dispatch();
// Memory is watched, and whoever faults serves himself. Once true, it stays true but for forked children.
void threads_serve_faults_from_now_on();
inline bool threads_serve_faults() { return detail::threads_serve_faults.load_relaxed(); }
void dispatch_forked();

// This thread has to do with managed memory. `returns_to_its_mask`: in a handler, whose return puts the thread's mask
// back; one that has SIGSYS blocked, by a call that nobody saw, is left alone. Async-signal-safe.
inline void dispatch_if_wanted(bool returns_to_its_mask = false) {
  if (detail::dispatches.load_relaxed() && !spw::detail::in_runtime.is_dispatched.load_relaxed()) [[unlikely]]
    detail::dispatch_this_thread(returns_to_its_mask);
}
// Whether threads may come to be dispatched.
bool may_dispatch();

}  // namespace spw::libc
