#include "libc/signals/handlers.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <utility>

#include "base/atomic.h"
#include "base/in_runtime.h"
#include "libc/aio/aio.h"
#include "libc/managed.h"
#include "libc/real.h"
#include "libc/signals/fault_signal.h"

namespace spw::libc {

namespace {

constexpr int kSignals = 64;

// A program's handler in one word:
//
//      63                                     2         1          0
//     +------------------------------------------+-----------+----------+
//     | address, of at most 62 bits              | SIGINFO   | RESETHAND|
//     +------------------------------------------+-----------+----------+
class Handler {
 public:
  explicit Handler(uint64_t word) : word_(word) {}
  explicit Handler(const struct sigaction& action)
      : word_(reinterpret_cast<uint64_t>(action.sa_handler) << 2 |
              uint64_t{(action.sa_flags & SA_SIGINFO) != 0} << 1 |
              uint64_t{(static_cast<unsigned>(action.sa_flags) & SA_RESETHAND) != 0}) {}

  uint64_t word() const { return word_; }
  bool is_none() const { return word_ == 0; }
  bool is_once() const { return (word_ & 1) != 0; }
  void put_into(struct sigaction* action) const {
    action->sa_handler = reinterpret_cast<sighandler_t>(word_ >> 2);
    put_flags_into(action);
  }
  void put_flags_into(struct sigaction* action) const {
    constexpr unsigned kOurs = SA_SIGINFO | SA_RESETHAND;
    const unsigned its = ((word_ & 2) != 0 ? SA_SIGINFO : 0u) | (is_once() ? SA_RESETHAND : 0u);
    action->sa_flags = static_cast<int>((static_cast<unsigned>(action->sa_flags) & ~kOurs) | its);
  }

 private:
  uint64_t word_;
};

Atomic<uint64_t> g_handlers[kSignals + 1];  // 0: none of the program's

// What this thread has put off.
struct PutOff {
  sigset_t blocked;  // here; the kernel has them
  // Those that are never blocked: one each, as of any signal that is pending.
  siginfo_t kept[3];
  int kept_count;
};
constinit thread_local PutOff t_put_off{};

// Every signal but those of faults. What was blocked before.
sigset_t block_all() {
  sigset_t all, before{};
  sigfillset(&all);
  real().pthread_sigmask(SIG_BLOCK, Mask(&all), &before);
  return before;
}

// To this thread, as it was.
void send_again(int signal, const siginfo_t* info) {
  const pid_t process = getpid(), thread = gettid();
  if (syscall(SYS_rt_tgsigqueueinfo, process, thread, signal, info) != 0)
    syscall(SYS_tgkill, process, thread, signal);
}

void block_in_context(const sigset_t& signals, void* context) {
  // The kernel's frame has room for as many signals as there are, and not for all of a sigset_t.
  sigset_t& after = static_cast<ucontext_t*>(context)->uc_sigmask;
  for (int signal = 1; signal <= kSignals; ++signal)
    if (sigismember(&signals, signal) == 1) sigaddset(&after, signal);
}

// At the exit from the runtime.
void let_in() {
  const int saved_errno = errno;
  sigset_t mask = block_all();
  const PutOff put_off = std::exchange(t_put_off, PutOff{});
  for (int signal = 1; signal <= kSignals; ++signal)
    if (sigismember(&put_off.blocked, signal) == 1) sigdelset(&mask, signal);
  for (int i = 0; i < put_off.kept_count; ++i) send_again(put_off.kept[i].si_signo, &put_off.kept[i]);
  real().pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  errno = saved_errno;
}

void put_off(int signal, const siginfo_t* info, void* context) {
  block_all();  // until this frame is left
  sigaddset(&t_put_off.blocked, signal);
  send_again(signal, info);
  block_in_context(t_put_off.blocked, context);
  InRuntime::ask_at_exit(&let_in);
}

// Its action has changed since the kernel looked.
void send_back(int signal, const siginfo_t* info) {
  sigset_t its;
  sigemptyset(&its);
  sigaddset(&its, signal);
  real().pthread_sigmask(SIG_BLOCK, &its, nullptr);  // until this frame is left
  send_again(signal, info);
}

// Raised by what the thread itself does right now.
bool cannot_wait(int signal, const siginfo_t* info) {
  if (signal == SIGABRT) return info->si_code == SI_TKILL && info->si_pid == getpid();
  const bool is_of_instructions = signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE ||
                                  signal == SIGILL || signal == SIGTRAP || signal == SIGSYS;
  return is_of_instructions && info->si_code > 0;
}

// While one lives, a handler runs above what it interrupted.
class Level {
 public:
  explicit Level(void* context) {
    const Context* c = spw::access::context();
    if (c == nullptr || c->access == nullptr) return;
    const ucontext_t& interrupted = *static_cast<ucontext_t*>(context);
    access::HandlerStack stack;
    stack.frame = reinterpret_cast<uintptr_t>(context);
    stack.interrupted = static_cast<uintptr_t>(interrupted.uc_mcontext.gregs[REG_RSP]);
    const auto begin = reinterpret_cast<uintptr_t>(interrupted.uc_stack.ss_sp);
    if (stack.frame - begin < interrupted.uc_stack.ss_size) {
      stack.begin = begin;
      stack.end = begin + interrupted.uc_stack.ss_size;
    }
    access_ = c->access;
    level_ = access_->handler_begins(stack);
  }
  ~Level() {
    if (level_ <= 0) return;
    const int its_errno = errno;
    access_->handler_ends(level_);
    errno = its_errno;
  }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
  bool has_to_wait() const { return level_ < 0; }

 private:
  access::ManagedAccess* access_ = nullptr;
  int level_ = 0;
};

void call_it(const struct sigaction& action, int signal, siginfo_t* info, void* context) {
  if ((action.sa_flags & SA_SIGINFO) != 0)
    action.sa_sigaction(signal, info, context);
  else
    action.sa_handler(signal);
}

// As the kernel does before it calls a handler of SA_RESETHAND: flags and mask stay.
void reset(int signal, Handler handler) {
  SignalLock lock;
  if (g_handlers[signal].load_relaxed() != handler.word()) return;  // the program has set another one
  struct sigaction action{};
  real().sigaction(signal, nullptr, &action);
  action.sa_handler = SIG_DFL;
  handler.put_flags_into(&action);
  real().sigaction(signal, &action, nullptr);
  g_handlers[signal].store_release(0);
}

void on_signal(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const Handler handler(g_handlers[signal].load_acquire());
  const bool now = cannot_wait(signal, info);
  if (handler.is_none()) {
    send_back(signal, info);
  } else if (InRuntime::here() && !now) {
    put_off(signal, info, context);
  } else {
    Level level(context);
    if (level.has_to_wait() && !now) {
      put_off(signal, info, context);
    } else {
      if (handler.is_once()) reset(signal, handler);
      struct sigaction action{};
      handler.put_into(&action);
      if (info->si_code == SI_ASYNCIO) see_ends();
      errno = saved_errno;
      return call_it(action, signal, info, context);
    }
  }
  errno = saved_errno;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &on_signal;
}

// The kernel's answer as the program set it.
void restore(int signal, struct sigaction* told) {
  if (is_ours(*told)) Handler(g_handlers[signal].load_relaxed()).put_into(told);
}

struct sigaction wrapped(const struct sigaction& action) {
  struct sigaction ours = action;
  ours.sa_sigaction = &on_signal;
  ours.sa_flags = static_cast<int>((static_cast<unsigned>(ours.sa_flags) & ~SA_RESETHAND) | SA_SIGINFO);
  return ours;
}

}  // namespace

int set_handler(const SignalLock&, int signal, const struct sigaction* action, struct sigaction* before) {
  struct sigaction wanted{}, told{};
  const bool sets = action != nullptr, is_ours_to_keep = actions_are_ours();
  Handler handler(0);
  if (sets) {
    wanted = *action;
    wanted.sa_mask = *Mask(&action->sa_mask);
    const bool has_handler = wanted.sa_handler != SIG_DFL && wanted.sa_handler != SIG_IGN;
    if (has_handler && is_ours_to_keep && !is_ours(wanted)) {
      handler = Handler(wanted);
      wanted = wrapped(wanted);
    }
  }
  if (real().sigaction(signal, sets ? &wanted : nullptr, before != nullptr || sets ? &told : nullptr) != 0)
    return -1;
  if (before != nullptr) {
    restore(signal, &told);
    *before = told;
  }
  if (sets && is_ours_to_keep && !(is_ours(wanted) && handler.is_none()))
    g_handlers[signal].store_release(handler.word());  // pairs with on_signal()
  return 0;
}

int set_handler(int signal, const struct sigaction* action, struct sigaction* before) {
  SignalLock lock;
  return set_handler(lock, signal, action, before);
}

bool put_off_if_sent(int signal, const siginfo_t* info) {
  if (info->si_code > 0 || !InRuntime::here()) return false;
  const int saved_errno = errno;
  const sigset_t mask = block_all();
  bool is_kept = false;
  for (int i = 0; i < t_put_off.kept_count; ++i) is_kept |= t_put_off.kept[i].si_signo == signal;
  if (!is_kept) t_put_off.kept[t_put_off.kept_count++] = *info;
  InRuntime::ask_at_exit(&let_in);
  real().pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  errno = saved_errno;
  return true;
}

void call_handler(const struct sigaction& action, int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  Level level(context);
  errno = saved_errno;
  call_it(action, signal, info, context);
}

}  // namespace spw::libc
