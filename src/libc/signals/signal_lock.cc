#include "libc/signals/signal_lock.h"

#include <unistd.h>

#include "base/atomic.h"
#include "libc/real.h"
#include "platform/spin.h"

namespace spw::libc {

namespace {
Atomic<bool> g_locked{false};
Atomic<pid_t> g_process{0};
}  // namespace

SignalLock::SignalLock() {
  sigset_t all;
  sigfillset(&all);
  real().pthread_sigmask(SIG_SETMASK, &all, &mask_after_);
  while (g_locked.exchange_acquire(true)) platform::spin_pause();
}

SignalLock::~SignalLock() {
  g_locked.store_release(false);
  real().pthread_sigmask(SIG_SETMASK, &mask_after_, nullptr);
}

// Before the library's start there is but one process that it can be.
bool actions_are_ours() {
  const pid_t process = g_process.load_relaxed();
  return process == 0 || process == getpid();
}

void actions_become_ours() { g_process.store_relaxed(getpid()); }

void signals_forked() {
  g_locked.store_release(false);
  actions_become_ours();
}

}  // namespace spw::libc
