// Signals of the program's own beside faults of managed memory: blocked ones, and handlers of the signals that faults arrive as.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "foreign_library.h"
#include "parts.h"
#include "print.h"

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

void sum_in_handler(int) { g_sum = foreign_sum(g_words->data(), kWords); }

int in_handler(long) {
  std::vector<uint64_t> words = numbers();
  g_words = &words;
  struct sigaction action{};
  action.sa_handler = sum_in_handler;
  sigfillset(&action.sa_mask);
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  print_sum("in the handler", g_sum);
  signal(SIGUSR1, SIG_DFL);
  print_sum("sum", foreign_sum(words.data(), kWords));
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
    {"threads", threads}, {"in_handler", in_handler}, {"own_handler", own_handler}, {"gone", gone}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
