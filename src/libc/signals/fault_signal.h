// The signals of faults, SIGSEGV and SIGBUS, and of system calls, SIGSYS (dispatch.h), shared between the runtime and
// the program: the kernel knows the runtime's handler, which serves faults on managed memory; what the program installs
// is kept here and gets every other fault, as the kernel would have called it. Those that the runtime needs are never
// blocked: a fault in a thread that blocks its signal ends the process.
//
// Like the kernel's: the program's mask, SA_RESETHAND and SA_SIGINFO; an ignored fault ends the program; the default
// action leaves a core at the instruction. The handler runs on the program's alternate stack if it asked for that
// (SA_ONSTACK). Unlike it: the signal is not blocked while its handler runs, as if by SA_NODEFER, since what the
// handler uses may be managed; and what the program blocks leaves these out, in what it is told of its mask too.
// Threads: any. Async-signal-safe, sigaction() being so. Lifetime: the process's.
// A child of vfork() has handlers of its own and gets the kernel's
// sigaction(); so has one of fork(), which begins with a copy.
// Limits: a mask that is set without libc where such calls are not sent back (dispatch.h), or
// in the context that a handler returns to, is the program's own doing. A program that ignores
// SIGSEGV does not hand that on to what it executes. With SA_ONSTACK the runtime's handler
// begins on the program's alternate stack too (process/fault_handler.h: it needs little there).
#pragma once

#include <signal.h>

#include <cstdint>

#include "base/status.h"

namespace spw::libc {

using FaultHandler = void (*)(int signal, siginfo_t* info, void* context);

inline bool is_fault_signal(int signal) { return signal == SIGSEGV || signal == SIGBUS || signal == SIGSYS; }
// Once each, before memory is managed; other threads may be in set_fault_action(). `handler` is the runtime's. What was
// installed before counts as the program's.
Status share_fault_signal(int signal, FaultHandler handler);
// At the start, by the only thread there is: the signal will be shared.
void keep_unblocked(int signal);
// What the program's sigaction(signal, action, before) does. Until share_fault_signal() it is set_handler()'s.
int set_fault_action(int signal, const struct sigaction* action, struct sigaction* before);
// The same of any signal: set_handler()'s, or that.
int change_action(int signal, const struct sigaction* action, struct sigaction* before);
// The program leaves this one of them to the kernel. Async-signal-safe.
bool is_left_to_kernel(int signal);
// A fault that is not the runtime's. Called by its handler, as the last it does.
void pass_fault_on(int signal, siginfo_t* info, void* context);

// A mask as system calls take it, one bit for each signal, without what is kept unblocked.
uint64_t without_fault_signals(uint64_t mask);

// A mask of the program's as the kernel gets it: native, though the program's may be managed, and without what is kept
// unblocked. No mask stays none. `how` as for sigprocmask(): anything may be unblocked.
class Mask {
 public:
  explicit Mask(const sigset_t* wanted, int how = SIG_SETMASK);
  operator const sigset_t*() const { return is_none_ ? nullptr : &signals_; }

 private:
  sigset_t signals_;
  bool is_none_;
};

}  // namespace spw::libc
