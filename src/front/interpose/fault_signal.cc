#include "front/interpose/fault_signal.h"

#include <errno.h>
#include <unistd.h>

#include "base/atomic.h"
#include "front/interpose/memory.h"
#include "front/interpose/real.h"
#include "platform/spin.h"

namespace spw::interpose {

namespace {

struct Shared {
  FaultHandler handler = nullptr;
  struct sigaction program{};
};
Shared g_segv, g_bus;
// Whose actions these are: not those of a child of vfork(), which shares our memory but not our handlers.
pid_t g_process = 0;
sigset_t g_unblocked;  // empty at first, as all bits 0 are; does not change once there are threads

Shared& shared(int signal) { return signal == SIGSEGV ? g_segv : g_bus; }

// Guards the above. Signals are blocked while it is held, so no handler of the same thread can wait for it.
Atomic<bool> g_locked{false};

class Locked {
 public:
  Locked() {
    sigset_t all;
    sigfillset(&all);
    real().pthread_sigmask(SIG_SETMASK, &all, &mask_after_);
    while (g_locked.exchange_acquire(true)) platform::spin_pause();
  }
  ~Locked() {
    g_locked.store_release(false);
    real().pthread_sigmask(SIG_SETMASK, &mask_after_, nullptr);
  }
  // These stay blocked afterwards, too.
  void keep_blocked(const sigset_t& signals) { sigorset(&mask_after_, &mask_after_, &signals); }

 private:
  sigset_t mask_after_;
};

// `before`: what this replaces.
int install(int signal, const struct sigaction& program, struct sigaction* before) {
  struct sigaction ours{};
  ours.sa_sigaction = shared(signal).handler;
  // SA_NODEFER: serving a fault may itself be interrupted by another thread's; the program's mask is not ours to grow. An
  // ignored signal interrupts no system call.
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | (program.sa_flags & (SA_RESTART | SA_ONSTACK));
  if (program.sa_handler == SIG_IGN) ours.sa_flags |= SA_RESTART;
  return real().sigaction(signal, &ours, before);
}

// The default action: let the instruction fault again, without us. A signal that was sent belongs to no instruction.
void end_by_default(int signal, const siginfo_t* info) {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  real().sigaction(signal, &action, nullptr);
  if (info->si_code <= 0) raise(signal);
}

}  // namespace

Status share_fault_signal(int signal, FaultHandler handler) {
  Locked lock;
  struct sigaction before{};
  if (real().sigaction(signal, nullptr, &before) != 0) return Status(errno, "cannot read the fault handler");
  shared(signal).handler = handler;
  g_process = getpid();
  if (install(signal, before, &shared(signal).program) != 0)
    return Status(errno, "cannot install the fault handler");
  return {};
}

void keep_unblocked(int signal) {
  sigaddset(&g_unblocked, signal);
  real().pthread_sigmask(SIG_UNBLOCK, &g_unblocked, nullptr);
}

void fault_signal_forked() {
  g_locked.store_release(false);
  g_process = getpid();
}

int set_fault_action(int signal, const struct sigaction* action, struct sigaction* before) {
  // Outside of the lock: these addresses are the program's, and may fault.
  struct sigaction wanted{}, replaced{};
  if (action != nullptr) wanted = *action;
  int result = 0;
  {
    Locked lock;
    Shared& ours = shared(signal);
    if (ours.handler == nullptr || g_process != getpid()) {
      wanted.sa_mask = *Mask(&wanted.sa_mask);
      result = real().sigaction(signal, action ? &wanted : nullptr, &replaced);
    } else {
      replaced = ours.program;
      if (action != nullptr) result = install(signal, wanted, nullptr);
      if (action != nullptr && result == 0) ours.program = wanted;
    }
  }
  if (result == 0 && before != nullptr) *before = replaced;
  return result;
}

void pass_fault_on(int signal, siginfo_t* info, void* context) {
  struct sigaction program;
  {
    Locked lock;
    Shared& ours = shared(signal);
    program = ours.program;
    if (program.sa_handler != SIG_DFL && program.sa_handler != SIG_IGN) {
      if ((program.sa_flags & SA_RESETHAND) != 0) ours.program.sa_handler = SIG_DFL;
      // Not this signal itself: the handler may use managed memory. The kernel puts the mask back when our handler returns.
      program.sa_mask = *Mask(&program.sa_mask);
      sigdelset(&program.sa_mask, signal);
      lock.keep_blocked(program.sa_mask);
    }
  }
  const bool was_sent = info->si_code <= 0;
  if (program.sa_handler == SIG_IGN && was_sent) return;
  if (program.sa_handler == SIG_DFL || program.sa_handler == SIG_IGN) return end_by_default(signal, info);
  if ((program.sa_flags & SA_SIGINFO) != 0)
    program.sa_sigaction(signal, info, context);
  else
    program.sa_handler(signal);
}

Mask::Mask(const sigset_t* wanted, int how) : is_none_(wanted == nullptr) {
  if (is_none_) return;
  copy_bytes(&signals_, wanted, sizeof signals_);
  for (const int signal : {SIGSEGV, SIGBUS})
    if (how != SIG_UNBLOCK && sigismember(&g_unblocked, signal) == 1) sigdelset(&signals_, signal);
}

}  // namespace spw::interpose
