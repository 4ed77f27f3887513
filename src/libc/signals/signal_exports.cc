// Calls about signals, under their ordinary names. What they block
// leaves out what faults of managed memory need (Mask).
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "base/atomic.h"
#include "libc/aio/aio.h"
#include "libc/entry.h"
#include "libc/io/native_argument.h"
#include "libc/signals/alternate_stack.h"
#include "libc/signals/fault_signal.h"
#include "libc/signals/handlers.h"

using namespace spw::libc;

// Left alone, since they neither block a signal nor get to its handler:
//  - sigrelse, siggetmask and the sigpause of X/Open unblock and tell;
//  - longjmp, setcontext and what returns from a handler put back a mask that came about here;
//  - posix_spawnattr_setsigmask is for a program that has a runtime of its own, which unblocks what it needs;
//  - raise, kill and the like send.
// So are __sigaction and __sigsuspend, which no header names, and
// sigvec and __sigpause, which none has named for many years.

namespace {

// The signals of siginterrupt(): bit i for signal i + 1.
spw::Atomic<uint64_t> g_interrupting{0};
bool interrupts(int number) {
  return number > 0 && number < _NSIG && (g_interrupting.load_relaxed() >> (number - 1) & 1) != 0;
}
void set_interrupts(int number, bool yes) {
  const uint64_t bit = uint64_t{1} << (number - 1);
  yes ? g_interrupting.fetch_or_relaxed(bit) : g_interrupting.fetch_and_relaxed(~bit);
}

// Masks of old calls have a bit for each of the first 32 signals, the lowest for the first.
constexpr int kOldSignals = 32;
sigset_t signals_of(int bits) {
  sigset_t signals;
  sigemptyset(&signals);
  for (int i = 0; i < kOldSignals; ++i)
    if ((static_cast<unsigned>(bits) >> i & 1) != 0) sigaddset(&signals, i + 1);
  return signals;
}
int change_old_mask(int how, int bits) {
  const sigset_t wanted = signals_of(bits);
  sigset_t before;
  real().sigprocmask(how, Mask(&wanted), &before);
  unsigned told = 0;
  for (int i = 0; i < kOldSignals; ++i)
    if (sigismember(&before, i + 1) == 1) told |= 1u << i;
  return static_cast<int>(told);
}

}  // namespace

// Handlers.
SPW_ENTRY int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  return change_action(signal, Native(action), Native(before));
}
static sighandler_t set_with(int number, sighandler_t handler, int flags, bool blocks_itself) {
  struct sigaction action{}, before;
  if (blocks_itself && sigaddset(&action.sa_mask, number) != 0) return SIG_ERR;
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  action.sa_handler = handler;
  action.sa_flags = flags;
  return change_action(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}
SPW_ENTRY sighandler_t signal(int number, sighandler_t handler) noexcept {
  return set_with(number, handler, interrupts(number) ? 0 : SA_RESTART, true);
}
// Of the handler that is there, and of those that signal() sets later.
SPW_ENTRY int siginterrupt(int number, int yes) noexcept {
  struct sigaction action;
  if (change_action(number, nullptr, &action) != 0) return -1;
  set_interrupts(number, yes != 0);
  action.sa_flags = yes != 0 ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
  return change_action(number, &action, nullptr);
}
SPW_ENTRY sighandler_t bsd_signal(int number, sighandler_t handler) noexcept {
  return signal(number, handler);
}
SPW_ENTRY sighandler_t ssignal(int number, sighandler_t handler) noexcept { return signal(number, handler); }
SPW_ENTRY sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
  return set_with(number, handler, static_cast<int>(SA_RESETHAND | SA_NODEFER), false);
}
SPW_ENTRY sighandler_t sysv_signal(int number, sighandler_t handler) noexcept {
  return __sysv_signal(number, handler);
}
SPW_ENTRY sighandler_t sigset(int number, sighandler_t handler) noexcept {
  sigset_t its, blocked;
  sigemptyset(&its);
  if (sigaddset(&its, number) != 0) return SIG_ERR;
  const int how = handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK;
  struct sigaction action{}, before;
  action.sa_handler = handler;
  if (change_action(number, how == SIG_BLOCK ? nullptr : &action, &before) != 0) return SIG_ERR;
  real().sigprocmask(how, Mask(&its, how), &blocked);
  return sigismember(&blocked, number) == 1 ? SIG_HOLD : before.sa_handler;
}
SPW_ENTRY int sigignore(int number) noexcept {
  struct sigaction action{};
  action.sa_handler = SIG_IGN;
  return change_action(number, &action, nullptr);
}
SPW_ENTRY int sigaltstack(const stack_t* wanted, stack_t* before) noexcept {
  return set_alternate_stack(Native(wanted), Native(before));
}

// What is blocked.
SPW_ENTRY int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return real().sigprocmask(how, Mask(set, how), Native(before));
}
SPW_ENTRY int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return real().pthread_sigmask(how, Mask(set, how), Native(before));
}
SPW_ENTRY int pthread_attr_setsigmask_np(pthread_attr_t* attributes, const sigset_t* mask) {
  return real().pthread_attr_setsigmask_np(attributes, Mask(mask));
}
SPW_ENTRY int sighold(int number) noexcept {
  sigset_t its;
  sigemptyset(&its);
  return sigaddset(&its, number) == 0 ? real().sigprocmask(SIG_BLOCK, Mask(&its), nullptr) : -1;
}
SPW_ENTRY int sigblock(int bits) noexcept { return change_old_mask(SIG_BLOCK, bits); }
SPW_ENTRY int sigsetmask(int bits) noexcept { return change_old_mask(SIG_SETMASK, bits); }
SPW_ENTRY int sigpending(sigset_t* out) noexcept { return real().sigpending(Native(out)); }

// Waiting.
SPW_ENTRY int sigsuspend(const sigset_t* mask) { return real().sigsuspend(Mask(mask)); }
// BSD's, which has this name in programs though headers have given it to X/Open's.
SPW_ENTRY int old_sigpause(int bits) __asm__("sigpause");
int old_sigpause(int bits) {
  const sigset_t mask = signals_of(bits);
  return real().sigsuspend(Mask(&mask));
}
SPW_ENTRY int signalfd(int fd, const sigset_t* signals, int flags) noexcept {
  return real().signalfd(fd, Native(signals), flags);
}
// What is taken may tell that asynchronous input is over.
SPW_ENTRY int sigwaitinfo(const sigset_t* set, siginfo_t* out) {
  const int taken = real().sigwaitinfo(Native(set), Native(out));
  see_ends();
  return taken;
}
SPW_ENTRY int sigtimedwait(const sigset_t* set, siginfo_t* out, const timespec* timeout) {
  const int taken = real().sigtimedwait(Native(set), Native(out), Native(timeout));
  see_ends();
  return taken;
}
SPW_ENTRY int sigwait(const sigset_t* set, int* signal) {
  const int error = real().sigwait(Native(set), Native(signal));
  see_ends();
  return error;
}
