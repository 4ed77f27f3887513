// Signal handlers that use managed memory, whatever the thread they interrupt was about.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "asleep.h"
#include "parts.h"
#include "print.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

constexpr size_t kWords = 1'500'000;
constexpr unsigned kTouchedAtOnce = 24;  // in as many blocks, mostly

// What handlers change, and nobody else.
std::vector<uint64_t>* g_theirs = nullptr;
std::atomic<uint64_t> g_calls{0}, g_touched{0};
std::atomic<long> g_wrong{0};
// Handlers that interrupt each other in one thread: of different signals.
constexpr size_t kDeepMax = 3;
// A word is changed by handlers of one thread and one depth only, so
// none is interrupted by another that changes it, too.
thread_local uint64_t t_seed = 1;
thread_local size_t t_first = 0, t_step = 1;
thread_local volatile size_t t_depth = 0;

// Native, since the kernel writes there.
thread_local char t_stack[64 << 10];

size_t next_place(size_t depth) {
  const size_t step = t_step * kDeepMax, first = t_first * kDeepMax + depth;
  const size_t at = next_random(&t_seed) % (kWords / step) * step + first;
  return at < kWords ? at : first;
}

void touch(int) {
  const int before = errno;
  const size_t depth = t_depth;
  t_depth = depth + 1;
  for (unsigned i = 0; i < kTouchedAtOnce; ++i) {
    uint64_t& word = (*g_theirs)[next_place(depth)];
    if (word >> 32 != 0) ++g_wrong;
    ++word;
  }
  g_touched += kTouchedAtOnce;
  ++g_calls;
  t_depth = depth;
  errno = before;
}

void touch_and_look(int number, siginfo_t* info, void*) {
  if (info->si_signo != number) ++g_wrong;
  touch(number);
}

void handle(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(number, &action, nullptr);
}
void handle(int number, sighandler_t handler, int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(number, &action, nullptr);
}

// Counts up words of its own until `calls` signals were handled. How many it counted.
uint64_t count_up(std::vector<uint64_t>& own, size_t first, size_t step, uint64_t calls, uint64_t seed) {
  uint64_t counted = 0;
  while (g_calls < calls)
    for (int i = 0; i < 100; ++i, ++counted) {
      const size_t at = next_random(&seed) % (kWords / step) * step + first;
      ++own[at < kWords ? at : first];
    }
  return counted;
}

uint64_t sum_of(const std::vector<uint64_t>& words) {
  uint64_t sum = 0;
  for (const uint64_t word : words) sum += word;
  return sum;
}

void print_outcome(const char* name, const std::vector<uint64_t>& own, uint64_t counted) {
  std::printf("%s: own %d, theirs %d, wrong %ld\n", name, sum_of(own) == counted,
              sum_of(*g_theirs) == g_touched, g_wrong.load());
}

// One signal, so that the work goes on for a while however long the handler takes.
void tick_in(long interval_us) {
  const itimerval once{{0, 0}, {0, interval_us}};
  setitimer(ITIMER_REAL, &once, nullptr);
}

std::atomic<long> g_ticks_left{0};
void touch_and_tick(int number) {
  touch(number);
  if (--g_ticks_left > 0) tick_in(1000);
}

// A timer's signals while the thread works.
int timer(long calls) {
  std::vector<uint64_t> own(kWords), theirs(kWords);
  g_theirs = &theirs;
  g_ticks_left = calls;
  handle(SIGALRM, touch_and_tick, SA_RESTART);
  tick_in(1000);
  const uint64_t counted = count_up(own, 0, 1, static_cast<uint64_t>(calls), 1);
  print_outcome("timer", own, counted);
  return 0;
}

// Timers of several threads, whose handlers interrupt each other and run on a stack of their own.
int timers(long calls) {
  constexpr size_t kThreads = 3;
  std::vector<uint64_t> own(kWords), theirs(kWords);
  g_theirs = &theirs;
  std::vector<std::thread> workers;
  std::atomic<uint64_t> counted{0};
  std::atomic<bool> done{false};
  const int numbers[] = {SIGRTMIN, SIGRTMIN + 1, SIGUSR2};
  for (const int number : numbers) handle(number, touch_and_look, SA_RESTART | SA_ONSTACK);
  // Until a worker knows which words are its own. This thread takes none at all.
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  for (size_t t = 0; t < kThreads; ++t)
    workers.emplace_back([&, t] {
      stack_t alternate{};
      alternate.ss_sp = t_stack;
      alternate.ss_size = sizeof t_stack;
      sigaltstack(&alternate, nullptr);
      t_seed = t + 7;
      t_first = t;
      t_step = kThreads;
      pthread_sigmask(SIG_SETMASK, &none, nullptr);
      counted += count_up(own, t, kThreads, static_cast<uint64_t>(calls), t + 1);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);
      while (!done) usleep(1000);
      alternate.ss_flags = SS_DISABLE;
      sigaltstack(&alternate, nullptr);
    });
  for (uint64_t i = 0; g_calls < static_cast<uint64_t>(calls); ++i) {
    // Two at a time, so that one interrupts the other.
    pthread_kill(workers[i % kThreads].native_handle(), numbers[i % 3]);
    pthread_kill(workers[i % kThreads].native_handle(), numbers[(i + 1) % 3]);
    usleep(500);
  }
  done = true;
  for (std::thread& worker : workers) worker.join();
  print_outcome("timers", own, counted);
  return 0;
}

sigjmp_buf g_back;
volatile sig_atomic_t g_jumps = 0;

void jump_back(int number) {
  touch(number);
  g_jumps = g_jumps + 1;
  siglongjmp(g_back, 1);
}

// Each signal ends a sweep wherever it is; the last one is let through.
int jump(long jumps) {
  std::vector<uint64_t> own(kWords), theirs(kWords);
  g_theirs = &theirs;
  for (size_t i = 0; i < kWords; ++i) own[i] = i * 3;
  handle(SIGALRM, jump_back, 0);
  volatile uint64_t sweeps = 0;
  sigsetjmp(g_back, 1);
  if (g_jumps < jumps) {
    tick_in(3000);
    for (;;) {
      for (size_t i = 0; i < kWords; ++i) own[(i * 4099) % kWords] = (i * 4099) % kWords * 3;
      sweeps = sweeps + 1;
    }
  }
  long wrong = 0;
  for (size_t i = 0; i < kWords; ++i) wrong += own[i] != i * 3;
  sigset_t now;
  sigprocmask(SIG_SETMASK, nullptr, &now);
  // The last call may have been left behind while it was counting.
  std::printf("jump: wrong %ld %ld, theirs %d, blocked %d\n", wrong, g_wrong.load(),
              sum_of(theirs) == g_touched, sigismember(&now, SIGALRM));
  return 0;
}

int g_pipe[2];

void touch_and_write(int number) {
  touch(number);
  if (g_calls == 2) write(g_pipe[1], "xyz", 3);
}

// To this thread, when it sleeps.
void send_later(int number) {
  const pthread_t thread = pthread_self();
  std::thread([thread, number, sleeper = gettid()] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    await_asleep(sleeper);
    pthread_kill(thread, number);
  }).detach();
}

// A call that waits is interrupted, or goes on, as the handler's flags say, and the handler has run when it returns.
int waiting(long) {
  std::vector<uint64_t> theirs(kWords);
  g_theirs = &theirs;
  pipe(g_pipe);
  const std::unique_ptr<char[]> buffer(new char[100'000]());
  handle(SIGUSR1, touch_and_write, 0);
  send_later(SIGUSR1);
  ssize_t got = read(g_pipe[0], buffer.get(), 100'000);
  std::printf("without SA_RESTART: %zd, interrupted %d, calls %d\n", got, errno == EINTR,
              static_cast<int>(g_calls));
  handle(SIGUSR1, touch_and_write, SA_RESTART);
  send_later(SIGUSR1);
  got = read(g_pipe[0], buffer.get(), 100'000);
  std::printf("with SA_RESTART: %zd %.3s, calls %d\n", got, buffer.get(), static_cast<int>(g_calls));
  siginterrupt(SIGUSR1, 1);
  send_later(SIGUSR1);
  const auto pause = std::make_unique<timespec>();
  pause->tv_sec = 60;
  const int slept = nanosleep(pause.get(), pause.get());
  std::printf("asleep: %d, interrupted %d, left %d, calls %d\n", slept, errno == EINTR, pause->tv_sec > 50,
              static_cast<int>(g_calls));
  std::printf("theirs %d\n", sum_of(theirs) == g_touched);
  return 0;
}

std::atomic<int> g_values{0};
void note_value(int, siginfo_t* info, void*) { g_values = g_values * 10 + info->si_value.sival_int; }

const char* name_of(const struct sigaction& action) {
  if (action.sa_handler == SIG_DFL) return "default";
  if (action.sa_handler == SIG_IGN) return "ignore";
  if (action.sa_handler == touch) return "touch";
  if (action.sa_sigaction == touch_and_look) return "touch and look";
  return action.sa_sigaction == note_value ? "note value" : "unknown";
}

void print_action(int number) {
  struct sigaction now{};
  sigaction(number, nullptr, &now);
  std::printf("%s, flags %x, usr2 in the mask %d\n", name_of(now),
              static_cast<unsigned>(now.sa_flags) & ~0x04000000u, sigismember(&now.sa_mask, SIGUSR2));
}

// What the program is told of its handlers is what it set, and each is called as often as it should be.
int told(long) {
  std::vector<uint64_t> theirs(kWords);
  g_theirs = &theirs;
  print_action(SIGUSR1);
  handle(SIGUSR1, touch, SA_RESTART | SA_NODEFER);
  print_action(SIGUSR1);
  struct sigaction once{};
  once.sa_sigaction = touch_and_look;
  once.sa_flags = static_cast<int>(SA_SIGINFO | SA_RESETHAND);
  sigaddset(&once.sa_mask, SIGUSR2);
  sigaction(SIGUSR1, &once, nullptr);
  print_action(SIGUSR1);
  raise(SIGUSR1);
  print_action(SIGUSR1);
  std::printf("signal() before: %d\n", signal(SIGUSR1, touch) == SIG_DFL);
  print_action(SIGUSR1);
  siginterrupt(SIGUSR1, 1);
  print_action(SIGUSR1);
  std::printf("signal() before: %d\n", signal(SIGUSR1, touch) == touch);
  print_action(SIGUSR1);
  siginterrupt(SIGUSR1, 0);
  print_action(SIGUSR1);
  std::printf("ignored before: %d\n", signal(SIGUSR1, SIG_IGN) == touch);
  raise(SIGUSR1);
  print_action(SIGUSR1);
  handle(SIGRTMIN, note_value, 0);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &one, nullptr);
  for (int i = 1; i <= 5; ++i) sigqueue(getpid(), SIGRTMIN, sigval{.sival_int = i});
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  std::printf("values %d, calls %d, theirs %d\n", g_values.load(), static_cast<int>(g_calls),
              sum_of(theirs) == g_touched);
  std::printf("no such signal: %d %d, no such way: %d\n", sigaction(1000, nullptr, &once), errno == EINVAL,
              signal(SIGKILL, touch) == SIG_ERR);
  return 0;
}

// A thread's first handler comes while it allocates natively, and
// reaches managed memory for the first time in that thread.
int in_allocator(long threads) {
  std::vector<uint64_t> theirs(kWords);
  g_theirs = &theirs;
  handle(SIGUSR1, touch, SA_RESTART);
  for (long t = 0; t < threads; ++t) {
    std::atomic<bool> begun{false}, done{false};
    std::thread worker([&, t] {
      t_seed = static_cast<uint64_t>(t) + 1;
      for (size_t i = 0; !done; ++i) {
        void* objects[8];
        for (void*& object : objects) {
          object = std::malloc(1100 + i % 2900);  // of an arena, under its lock
          *static_cast<volatile char*>(object) = 1;
        }
        for (void* object : objects) std::free(object);
        begun = true;
      }
    });
    while (!begun) std::this_thread::yield();
    pthread_kill(worker.native_handle(), SIGUSR1);
    while (g_calls <= static_cast<uint64_t>(t)) std::this_thread::yield();
    done = true;
    worker.join();
  }
  std::printf("in the allocator: theirs %d, wrong %ld\n", sum_of(theirs) == g_touched, g_wrong.load());
  return 0;
}

constexpr Part kParts[] = {
    {"in_allocator", in_allocator}, {"timer", timer}, {"timers", timers}, {"jump", jump},
    {"waiting", waiting},           {"told", told}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
