// Alternate signal stacks from malloc(): large ones, while the program has more memory than the cap.
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

constexpr size_t kStackBytes = 256 << 10, kWords = 1'500'000;

volatile sig_atomic_t g_calls = 0;
void count_call(int) {
  volatile char used[64 << 10];
  for (size_t i = 0; i < sizeof used; i += 4096) used[i] = 1;
  g_calls = g_calls + used[0];
}

int set_stack(void* memory, size_t bytes, stack_t* before) {
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = bytes;
  stack.ss_flags = memory != nullptr ? 0 : SS_DISABLE;
  return sigaltstack(&stack, before);
}

// Goes through more than the cap, with signals in between.
void go_through(std::vector<uint64_t>& words) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kWords; ++i) {
    words[i] += i * 7 + 1;
    if (i % (kWords / 10) == 0) raise(SIGUSR1);
  }
  for (const uint64_t word : words) sum += word;
  print_sum("sum", sum);
}

void* use_stacks(void*) {
  std::vector<uint64_t> words(kWords);
  char *first = static_cast<char*>(malloc(kStackBytes)),
       *second = static_cast<char*>(malloc(2 * kStackBytes));
  stack_t told{};
  std::printf("set %d\n", set_stack(first, kStackBytes, nullptr));
  go_through(words);
  std::printf("small %d, no memory %d\n", set_stack(first, 100, nullptr), errno == ENOMEM);
  std::printf("set another %d", set_stack(second, 2 * kStackBytes, &told));
  std::printf(", before: its own %d, bytes %zu\n", told.ss_sp == first, told.ss_size);
  free(first);
  go_through(words);
  std::printf("tell %d", sigaltstack(nullptr, &told));
  std::printf(": its own %d, bytes %zu\n", told.ss_sp == second, told.ss_size);
  std::printf("none %d\n", set_stack(nullptr, 0, &told));
  std::printf("before: its own %d, now ", told.ss_sp == second);
  std::printf("%d: disabled %d\n", sigaltstack(nullptr, &told), told.ss_flags == SS_DISABLE);
  go_through(words);
  std::printf("set again %d, calls %d\n", set_stack(second, kStackBytes, nullptr), static_cast<int>(g_calls));
  go_through(words);
  return second;  // a thread ends with its stack set
}

int in_main(long) {
  use_stacks(nullptr);
  return 0;
}

int in_threads(long count) {
  for (long i = 0; i < count; ++i) {
    pthread_t thread;
    void* last = nullptr;
    pthread_create(&thread, nullptr, &use_stacks, nullptr);
    pthread_join(thread, &last);
    free(last);
  }
  return 0;
}

constexpr Part kParts[] = {{"main", in_main}, {"threads", in_threads}};

}  // namespace

int main(int count, char** arguments) {
  struct sigaction action{};
  action.sa_handler = count_call;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  RUN_PARTS(kParts, count, arguments);
}
