// Signals of the program's own beside faults of managed memory:
// blocked ones, and handlers of the signals that faults arrive as.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "foreign_library.h"
#include "parts.h"
#include "print.h"

// Declared in headers under other circumstances only: what ppoll() is
// with _FORTIFY_SOURCE, and sigpause() with BSD's argument.
extern "C" int __ppoll_chk(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t bytes);
extern "C" int old_sigpause(int mask) __asm__("sigpause");

namespace {

constexpr size_t kWords = 3'000'000;
constexpr size_t kPageBytes = 4096;

std::vector<uint64_t>* g_words = nullptr;
sigjmp_buf g_back;
volatile sig_atomic_t g_signal = 0;
volatile uintptr_t g_address = 0;
volatile uint64_t g_sum = 0;

std::vector<uint64_t> numbers() {
  std::vector<uint64_t> words(kWords);
  for (size_t i = 0; i < kWords; ++i) words[i] = i * 7 + 1;
  return words;
}

void block_all() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

bool is_blocked(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

// As servers do that wait for their signals in one thread.
int threads(long) {
  block_all();
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  std::printf("blocked: usr1 %d term %d\n", sigismember(&now, SIGUSR1), sigismember(&now, SIGTERM));
  std::vector<uint64_t> words = numbers();
  std::vector<std::thread> workers;
  for (uint64_t t = 0; t < 3; ++t)
    workers.emplace_back([&words, t] {
      block_all();
      foreign_add(words.data() + t, kWords - 3, 3, t + 1);
    });
  for (std::thread& worker : workers) worker.join();
  print_sum("sum", foreign_sum(words.data(), kWords));
  return 0;
}

// The thread begins with its mask.
int thread_with_a_mask(long) {
  std::vector<uint64_t> words = numbers();
  g_words = &words;
  const auto all = std::make_unique<sigset_t>();
  sigfillset(all.get());
  const auto attributes = std::make_unique<pthread_attr_t>();
  pthread_attr_init(attributes.get());
  std::printf("set: %d\n", pthread_attr_setsigmask_np(attributes.get(), all.get()));
  pthread_t thread;
  const auto sum = [](void*) -> void* {
    g_sum = foreign_sum(g_words->data(), kWords);
    std::printf("term is blocked %d\n", is_blocked(SIGTERM));
    return nullptr;
  };
  pthread_create(&thread, attributes.get(), sum, nullptr);
  pthread_join(thread, nullptr);
  print_sum("sum", g_sum);
  std::printf("unset: %d\n", pthread_attr_setsigmask_np(attributes.get(), nullptr));
  std::printf("set: %d\n", pthread_attr_getsigmask_np(attributes.get(), all.get()) == 0);
  pthread_attr_destroy(attributes.get());
  return 0;
}

void sum_in_handler(int) { g_sum = foreign_sum(g_words->data(), kWords); }

int in_handler(long) {
  std::vector<uint64_t> words = numbers();
  g_words = &words;
  struct sigaction action{};
  action.sa_handler = sum_in_handler;
  sigfillset(&action.sa_mask);
  for (const int number : {SIGUSR1, SIGSEGV, SIGBUS}) {
    g_sum = 0;
    sigaction(number, &action, nullptr);
    raise(number);
    print_sum("in the handler", g_sum);
    signal(number, SIG_DFL);
  }
  print_sum("sum", foreign_sum(words.data(), kWords));
  return 0;
}

int wait_for_events(const sigset_t* mask, bool with_timespec) {
  epoll_event event;
  const int set = epoll_create1(0);
  const int result =
      with_timespec ? epoll_pwait2(set, &event, 1, nullptr, mask) : epoll_pwait(set, &event, 1, -1, mask);
  close(set);  // leaves errno alone
  return result;
}

struct Wait {
  const char* name;
  int (*until_signalled)(const sigset_t* mask);
};
constexpr Wait kWaits[] = {
    {"sigsuspend", [](const sigset_t* mask) { return sigsuspend(mask); }},
    {"ppoll", [](const sigset_t* mask) { return ppoll(nullptr, 0, nullptr, mask); }},
    {"pselect", [](const sigset_t* mask) { return pselect(0, nullptr, nullptr, nullptr, nullptr, mask); }},
    {"epoll_pwait", [](const sigset_t* mask) { return wait_for_events(mask, false); }},
    {"epoll_pwait2", [](const sigset_t* mask) { return wait_for_events(mask, true); }},
    {"ppoll, checked", [](const sigset_t* mask) { return __ppoll_chk(nullptr, 0, nullptr, mask, 0); }},
    {"sigpause, old", [](const sigset_t*) { return old_sigpause(~(1 << (SIGUSR1 - 1))); }},
};

volatile sig_atomic_t g_term_was_blocked = 0;
void sum_while_suspended(int signal) {
  g_term_was_blocked = is_blocked(SIGTERM);
  sum_in_handler(signal);
}

// A pending signal is let in by a mask that blocks all others; the mask itself is on the heap.
int suspended(long which) {
  const Wait& wait = kWaits[which];
  std::vector<uint64_t> words = numbers();
  g_words = &words;
  struct sigaction action{};
  action.sa_handler = sum_while_suspended;
  sigaction(SIGUSR1, &action, nullptr);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  sigprocmask(SIG_BLOCK, &one, nullptr);
  const auto others = std::make_unique<sigset_t>();
  sigfillset(others.get());
  sigdelset(others.get(), SIGUSR1);
  for (int i = 0; i < 2; ++i) {
    g_sum = 0;
    raise(SIGUSR1);
    const uint64_t before = g_sum;
    const int result = wait.until_signalled(others.get());
    const bool was_interrupted = errno == EINTR;
    std::printf("%s: %d, interrupted %d, early %d\n", wait.name, result, was_interrupted, before != 0);
    print_sum("in the handler", g_sum);
    std::printf("term was blocked %d, is %d; usr1 is %d\n", static_cast<int>(g_term_was_blocked),
                is_blocked(SIGTERM), is_blocked(SIGUSR1));
  }
  return 0;
}

void go_back(int signal, siginfo_t* info, void*) {
  g_signal = signal;
  g_address = reinterpret_cast<uintptr_t>(info->si_addr);
  siglongjmp(g_back, 1);
}

// A mapping reaches further than its file, which is what SIGBUS is for; it is made without libc, so nobody manages it.
int own_handler(long) {
  std::vector<uint64_t> words = numbers();
  struct sigaction action{}, before{};
  action.sa_sigaction = go_back;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, &before);
  std::printf("before: default %d\n", before.sa_handler == SIG_DFL);
  char name[] = "shortXXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  if (file < 0 || ftruncate(file, kPageBytes) != 0) return 1;
  auto* bytes = reinterpret_cast<volatile char*>(
      syscall(SYS_mmap, nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  for (int i = 0; i < 3; ++i) {
    print_sum("sum", foreign_sum(words.data(), kWords));
    if (sigsetjmp(g_back, 1) == 0) bytes[kPageBytes] = 1;
    std::printf("signal %d, at the second page %d\n", static_cast<int>(g_signal),
                g_address == reinterpret_cast<uintptr_t>(bytes) + kPageBytes);
  }
  foreign_add(words.data(), kWords, 3, 1'000);
  print_sum("after add", foreign_sum(words.data(), kWords));
  return 0;
}

// Natively the kernel has taken the pages back, too.
int gone(long) {
  std::vector<uint64_t> words = numbers();
  struct sigaction action{};
  action.sa_sigaction = go_back;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
  constexpr size_t kBytes = 64 << 20;
  auto* bytes = static_cast<volatile char*>(
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (size_t i = 0; i < kBytes; i += kPageBytes) bytes[i] = 1;
  munmap(const_cast<char*>(bytes), kBytes);
  for (size_t at : {size_t{0}, kBytes / 2}) {
    if (sigsetjmp(g_back, 1) == 0) g_sum = static_cast<uint64_t>(bytes[at]);
    std::printf("segmentation fault %d, there %d\n", g_signal == SIGSEGV,
                g_address == reinterpret_cast<uintptr_t>(bytes) + at);
  }
  print_sum("sum", foreign_sum(words.data(), kWords));
  return 0;
}

constexpr Part kParts[] = {
    {"threads", threads},         {"thread_with_a_mask", thread_with_a_mask},
    {"in_handler", in_handler},   {"suspended", suspended},
    {"own_handler", own_handler}, {"gone", gone},
};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
