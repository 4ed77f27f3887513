// Calls about signals, under their ordinary names. What they block leaves out what faults of managed memory need (Mask).
#include <signal.h>

#include "front/interpose/entry.h"
#include "front/interpose/fault_signal.h"
#include "front/interpose/native_argument.h"

using namespace spw::interpose;

SPW_ENTRY int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  if (is_fault_signal(signal)) return set_fault_action(signal, Native(action), Native(before));
  if (action == nullptr) return real().sigaction(signal, nullptr, Native(before));
  struct sigaction wanted = *Native(action);
  wanted.sa_mask = *Mask(&wanted.sa_mask);
  return real().sigaction(signal, &wanted, Native(before));
}
// What signal() is in terms of sigaction() differs by the flags alone.
static sighandler_t set_handler(int number, sighandler_t handler, int flags,
                                sighandler_t (*otherwise)(int, sighandler_t)) {
  if (!is_fault_signal(number) || handler == SIG_ERR) return otherwise(number, handler);
  struct sigaction action{}, before;
  action.sa_handler = handler;
  action.sa_flags = flags;
  if (flags == SA_RESTART) sigaddset(&action.sa_mask, number);
  return set_fault_action(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}
SPW_ENTRY sighandler_t signal(int number, sighandler_t handler) noexcept {
  return set_handler(number, handler, SA_RESTART, real().signal);
}
SPW_ENTRY sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
  return set_handler(number, handler, SA_RESETHAND | SA_NODEFER, real().__sysv_signal);
}
SPW_ENTRY int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return real().sigprocmask(how, Mask(set, how), Native(before));
}
SPW_ENTRY int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return real().pthread_sigmask(how, Mask(set, how), Native(before));
}
SPW_ENTRY int sigaltstack(const stack_t* wanted, stack_t* before) noexcept {
  return real().sigaltstack(Native(wanted), Native(before));
}
SPW_ENTRY int sigpending(sigset_t* out) noexcept { return real().sigpending(Native(out)); }
SPW_ENTRY int sigsuspend(const sigset_t* mask) { return real().sigsuspend(Mask(mask)); }
SPW_ENTRY int sigwaitinfo(const sigset_t* set, siginfo_t* out) {
  return real().sigwaitinfo(Native(set), Native(out));
}
SPW_ENTRY int sigtimedwait(const sigset_t* set, siginfo_t* out, const timespec* timeout) {
  return real().sigtimedwait(Native(set), Native(out), Native(timeout));
}
SPW_ENTRY int sigwait(const sigset_t* set, int* signal) {
  return real().sigwait(Native(set), Native(signal));
}
