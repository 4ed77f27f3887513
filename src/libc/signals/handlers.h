// The program's signal handlers: the kernel knows the runtime's, which calls them where their thread is outside of the
// runtime (InRuntime), since they may use managed memory and interposed functions as they like.
//
// A signal that arrives                   what happens
//   outside of the runtime                its handler is called at once, as by the kernel
//   inside                                it is put off: blocked in this thread and sent again to it, so that the kernel keeps it; the exit
//                                         from the runtime unblocks it, and the kernel calls
//                                             the handler with the mask, the stack and the
//                                         queue that it always has
//   inside, raised by an instruction      at once (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, and abort()): it cannot wait
//   in the last of so many handlers that  put off until one of them ends (access/managed_access.h) interrupt each other
//
// So a handler runs before the call returns that its signal met in the runtime. System calls that may wait are made
// outside of it on behalf of the program: these are interrupted, or go on, as the program's SA_RESTART says. What
// siginfo holds is kept; the context is that of the exit. A handler may leave by siglongjmp: nothing of the runtime is
// held where it runs. The program is told of the handlers that it set.
//
// State: of each signal, one word with the handler's address, written after the kernel's action under SignalLock and
// read without it, so handlers never see half of one. Flags and mask are the kernel's. A word of 0 in the runtime's
// handler: the action was changed after the kernel had looked; the signal is sent again, and gets what holds then.
// Of each thread, which signals it has put off. Changed with all signals blocked, so
// that no handler sees it half changed. In a put-off signal's own frame they are added
// to the mask that the kernel puts back; those that came between are among them.
// Threads: any. Async-signal-safe, sigaction() being so. Lifetime: the process's. A child of vfork() has handlers of
// its own and sets them unwrapped.
// Limits: handlers that were set by a system call without libc that was not sent back (dispatch.h) are not known here
// and run wherever they come. Real-time signals of one number that are pending together may change order when the first
// is put off, and one is lost if the user's queue is full at that moment (RLIMIT_SIGPENDING). The handler of an
// instruction's signal that came from inside of the runtime must not use managed memory, nor jump.
#pragma once

#include <signal.h>

#include "libc/signals/signal_lock.h"

namespace spw::libc {

// What the program's sigaction(signal, action, before) does, of native structures.
int set_handler(int signal, const struct sigaction* action, struct sigaction* before);
// The same for who has the lock.
int set_handler(const SignalLock& lock, int signal, const struct sigaction* action, struct sigaction* before);

// For signals that have a handler of the runtime's own and are never blocked: whether this one was put off, because it
// was sent while the thread is inside.
bool put_off_if_sent(int signal, const siginfo_t* info);
// Calls the handler in `action` as the kernel would, with what is interrupted kept valid.
void call_handler(const struct sigaction& action, int signal, siginfo_t* info, void* context);

}  // namespace spw::libc
