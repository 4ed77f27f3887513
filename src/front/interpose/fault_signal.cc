#include "front/interpose/fault_signal.h"

#include <errno.h>

#include "base/atomic.h"
#include "front/interpose/real.h"
#include "platform/spin.h"

namespace spw::interpose {

namespace {

FaultHandler g_handler = nullptr;
struct sigaction g_program;

// Guards g_program. Signals are blocked while it is held, so no handler of the same thread can wait for it.
Atomic<bool> g_locked{false};

class Locked {
 public:
  Locked() {
    sigset_t all;
    sigfillset(&all);
    real().pthread_sigmask(SIG_SETMASK, &all, &before_);
    while (g_locked.exchange_acquire(true)) platform::spin_pause();
  }
  ~Locked() {
    g_locked.store_release(false);
    real().pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t before_;
};

int install(int program_flags) {
  struct sigaction ours{};
  ours.sa_sigaction = g_handler;
  // SA_NODEFER: serving a fault may itself be interrupted by another thread's; the program's mask is not ours to grow.
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | (program_flags & (SA_RESTART | SA_ONSTACK));
  return real().sigaction(SIGSEGV, &ours, nullptr);
}

// The default action: let the instruction fault again, without us. A signal that was sent belongs to no instruction.
void end_by_default(int signal, const siginfo_t* info) {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  real().sigaction(signal, &action, nullptr);
  if (info->si_code <= 0) raise(signal);
}

}  // namespace

Status share_fault_signal(FaultHandler handler) {
  struct sigaction before;
  if (real().sigaction(SIGSEGV, nullptr, &before) != 0) return Status(errno, "cannot read the fault handler");
  g_program = before;
  g_handler = handler;
  if (install(before.sa_flags) != 0) return Status(errno, "cannot install the fault handler");
  return {};
}

int set_fault_action(const struct sigaction* action, struct sigaction* before) {
  if (g_handler == nullptr) return real().sigaction(SIGSEGV, action, before);
  // Outside of the lock: these addresses are the program's, and may fault.
  struct sigaction wanted{}, replaced;
  if (action != nullptr) wanted = *action;
  {
    Locked lock;
    replaced = g_program;
    if (action != nullptr) {
      if (install(wanted.sa_flags) != 0) return -1;
      g_program = wanted;
    }
  }
  if (before != nullptr) *before = replaced;
  return 0;
}

void pass_fault_on(int signal, siginfo_t* info, void* context) {
  struct sigaction program;
  {
    Locked lock;
    program = g_program;
    if ((program.sa_flags & SA_RESETHAND) != 0) g_program.sa_handler = SIG_DFL;
  }
  const bool was_sent = info->si_code <= 0;
  if (program.sa_handler == SIG_IGN && was_sent) return;
  if (program.sa_handler == SIG_DFL || program.sa_handler == SIG_IGN) return end_by_default(signal, info);
  // The kernel puts the thread's mask back when our handler returns.
  if ((program.sa_flags & SA_NODEFER) == 0) sigaddset(&program.sa_mask, signal);
  real().pthread_sigmask(SIG_BLOCK, &program.sa_mask, nullptr);
  if ((program.sa_flags & SA_SIGINFO) != 0)
    program.sa_sigaction(signal, info, context);
  else
    program.sa_handler(signal);
}

}  // namespace spw::interpose
