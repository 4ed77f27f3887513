#include "libc/signals/fault_signal.h"

#include <errno.h>
#include <unistd.h>

#include "libc/managed.h"
#include "libc/real.h"
#include "libc/signals/handlers.h"
#include "libc/signals/signal_lock.h"

namespace spw::libc {

namespace {

constexpr int kFaultSignals[] = {SIGSEGV, SIGBUS, SIGSYS};

struct Shared {
  FaultHandler handler = nullptr;
  struct sigaction program{};
};
Shared g_segv, g_bus, g_sys;
sigset_t g_unblocked;  // empty at first, as all bits 0 are; does not change once there are threads

Shared& shared(int signal) { return signal == SIGSEGV ? g_segv : signal == SIGBUS ? g_bus : g_sys; }

int install(int signal, const struct sigaction& program) {
  struct sigaction ours{};
  ours.sa_sigaction = shared(signal).handler;
  // SA_NODEFER: serving a fault may itself be interrupted by another thread's; the program's mask is not ours to grow.
  // An ignored signal interrupts no system call.
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | (program.sa_flags & (SA_RESTART | SA_ONSTACK));
  if (program.sa_handler == SIG_IGN) ours.sa_flags |= SA_RESTART;
  return real().sigaction(signal, &ours, nullptr);
}

// The default action: let the instruction fault again, without us. A signal that was sent belongs to no instruction,
// and that of a system call came behind it.
void end_by_default(int signal, const siginfo_t* info) {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  real().sigaction(signal, &action, nullptr);
  if (info->si_code <= 0 || signal == SIGSYS) raise(signal);
}

}  // namespace

Status share_fault_signal(int signal, FaultHandler handler) {
  SignalLock lock;
  actions_become_ours();
  // In a forked child it may be ours already: then what the kernel has is not the program's.
  const bool is_ours = shared(signal).handler != nullptr;
  if (!is_ours && set_handler(lock, signal, nullptr, &shared(signal).program) != 0)
    return Status(errno, "cannot read the fault handler");
  shared(signal).handler = handler;
  if (install(signal, shared(signal).program) != 0) return Status(errno, "cannot install the fault handler");
  return {};
}

void keep_unblocked(int signal) {
  sigaddset(&g_unblocked, signal);
  real().pthread_sigmask(SIG_UNBLOCK, &g_unblocked, nullptr);
}

int set_fault_action(int signal, const struct sigaction* action, struct sigaction* before) {
  // Outside of the lock: these addresses are the program's, and may fault.
  struct sigaction wanted{}, replaced{};
  if (action != nullptr) wanted = *action;
  int result = 0;
  {
    SignalLock lock;
    Shared& ours = shared(signal);
    if (ours.handler == nullptr || !actions_are_ours()) {
      result = set_handler(lock, signal, action ? &wanted : nullptr, &replaced);
    } else {
      replaced = ours.program;
      if (action != nullptr) result = install(signal, wanted);
      if (action != nullptr && result == 0) ours.program = wanted;
    }
  }
  if (result == 0 && before != nullptr) *before = replaced;
  return result;
}

int change_action(int signal, const struct sigaction* action, struct sigaction* before) {
  return is_fault_signal(signal) ? set_fault_action(signal, action, before)
                                 : set_handler(signal, action, before);
}

bool is_left_to_kernel(int signal) {
  SignalLock lock;
  return shared(signal).program.sa_handler == SIG_DFL;
}

void pass_fault_on(int signal, siginfo_t* info, void* context) {
  if (put_off_if_sent(signal, info)) return;
  struct sigaction program;
  {
    SignalLock lock;
    Shared& ours = shared(signal);
    program = ours.program;
    if (program.sa_handler != SIG_DFL && program.sa_handler != SIG_IGN) {
      if ((program.sa_flags & SA_RESETHAND) != 0) ours.program.sa_handler = SIG_DFL;
      // Not this signal itself: the handler may use managed memory.
      // The kernel puts the mask back when our handler returns.
      program.sa_mask = *Mask(&program.sa_mask);
      sigdelset(&program.sa_mask, signal);
      lock.keep_blocked(program.sa_mask);
    }
  }
  const bool was_sent = info->si_code <= 0;
  if (program.sa_handler == SIG_IGN && was_sent) return;
  if (program.sa_handler == SIG_DFL || program.sa_handler == SIG_IGN) return end_by_default(signal, info);
  call_handler(program, signal, info, context);
}

uint64_t without_fault_signals(uint64_t mask) {
  for (const int signal : kFaultSignals)
    if (sigismember(&g_unblocked, signal) == 1) mask &= ~(uint64_t{1} << (signal - 1));
  return mask;
}

Mask::Mask(const sigset_t* wanted, int how) : is_none_(wanted == nullptr) {
  if (is_none_) return;
  copy_bytes(&signals_, wanted, sizeof signals_);
  for (const int signal : kFaultSignals)
    if (how != SIG_UNBLOCK && sigismember(&g_unblocked, signal) == 1) sigdelset(&signals_, signal);
}

}  // namespace spw::libc
