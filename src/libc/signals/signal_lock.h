// Guards what is kept of the program's signal actions. Signals are blocked while it is held, so no handler of the same
// thread can wait for it. Threads: any; async-signal-safe. Held for a few system calls at most.
#pragma once

#include <signal.h>

namespace spw::libc {

class SignalLock {
 public:
  SignalLock();
  ~SignalLock();
  SignalLock(const SignalLock&) = delete;
  SignalLock& operator=(const SignalLock&) = delete;

  // These stay blocked afterwards, too.
  void keep_blocked(const sigset_t& signals) { sigorset(&mask_after_, &mask_after_, &signals); }

 private:
  sigset_t mask_after_;
};

// Whether what is kept is about this process: a child of vfork() shares our memory but not our handlers.
bool actions_are_ours();
void actions_become_ours();
// In the child of a fork, before anything else.
void signals_forked();

}  // namespace spw::libc
