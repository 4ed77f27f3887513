// Managed memory in the hands of code that was not recompiled.
#include <regex.h>
#include <setjmp.h>
#include <signal.h>

#include <cstdlib>
#include <cstring>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "foreign_library.h"
#include "parts.h"
#include "print.h"

namespace {

constexpr size_t kWords = 1'500'000;

int arrays(long) {
  std::vector<uint64_t> words(kWords);
  for (size_t i = 0; i < kWords; ++i) words[i] = i * i;
  print_sum("sum", foreign_sum(words.data(), kWords));
  foreign_add(words.data(), kWords, 3, 1'000);
  uint64_t sum = 0;
  for (uint64_t word : words) sum = mix(sum, word);
  print_sum("after add", sum);
  std::vector<char> copy(kWords * 8 + 1);
  foreign_copy(copy.data() + 1, reinterpret_cast<const char*>(words.data()), kWords * 8);
  std::printf("same %d\n", std::memcmp(copy.data() + 1, words.data(), kWords * 8) == 0);
  return 0;
}

sigjmp_buf g_back;
volatile sig_atomic_t g_faults = 0;
volatile sig_atomic_t g_blocked = 0;

void on_own_fault(int signal, siginfo_t* info, void*) {
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, nullptr, &blocked);
  g_blocked = sigismember(&blocked, SIGUSR1);
  g_faults = g_faults + (signal == SIGSEGV && info->si_addr == reinterpret_cast<void*>(16));
  siglongjmp(g_back, 1);
}

void count_fault(int) { g_faults = g_faults + 100; }

// A program that handles SIGSEGV itself, while foreign code faults on managed memory all the time.
int own_fault_handler(long) {
  std::vector<uint64_t> words(kWords);
  for (size_t i = 0; i < kWords; ++i) words[i] = i * i;
  struct sigaction own{}, before{};
  own.sa_sigaction = on_own_fault;
  own.sa_flags = SA_SIGINFO;
  sigaddset(&own.sa_mask, SIGUSR1);
  sigaction(SIGSEGV, &own, &before);
  std::printf("before: default %d\n", before.sa_handler == SIG_DFL);
  for (int i = 0; i < 3; ++i) {
    print_sum("sum", foreign_sum(words.data(), kWords));
    if (sigsetjmp(g_back, 1) == 0) *reinterpret_cast<volatile int*>(16) = 1;
  }
  std::printf("own faults %d, blocked in it %d\n", static_cast<int>(g_faults), static_cast<int>(g_blocked));
  std::printf("signal gives back ours %d\n",
              signal(SIGSEGV, count_fault) == reinterpret_cast<sighandler_t>(on_own_fault));
  raise(SIGSEGV);
  std::printf("faults %d\n", static_cast<int>(g_faults));
  own.sa_flags = SA_SIGINFO | SA_RESETHAND;
  sigaction(SIGSEGV, &own, &before);
  std::printf("before: ours %d\n", before.sa_handler == count_fault);
  if (sigsetjmp(g_back, 1) == 0) *reinterpret_cast<volatile int*>(16) = 1;
  sigaction(SIGSEGV, nullptr, &before);
  std::printf("reset %d\n", before.sa_handler == SIG_DFL);
  foreign_add(words.data(), kWords, 3, 1'000);
  print_sum("after add", foreign_sum(words.data(), kWords));
  return 0;
}

// Instrumented and foreign threads store to the same blocks, each to its own words.
int together(long) {
  std::vector<uint64_t> words(kWords);
  std::vector<uint64_t> counters(100 * 512);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 3; ++round) {
        foreign_add(words.data() + 2 * t, kWords - 6, 6, t + 1);
        foreign_atomic_add(counters.data(), counters.size(), 512);
      }
    });
    threads.emplace_back([&, t] {
      for (int round = 0; round < 3; ++round) {
        for (size_t i = 2 * t + 1; i < kWords; i += 6) words[i] += 10 * t + 1;
        for (size_t i = 0; i < counters.size(); i += 512)
          __atomic_fetch_add(&counters[i], 1, __ATOMIC_SEQ_CST);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  uint64_t sum = 0;
  for (uint64_t word : words) sum = mix(sum, word);
  for (uint64_t counter : counters) sum = mix(sum, counter);
  print_sum("sum", sum);
  std::printf("counter %llu\n", static_cast<unsigned long long>(counters[512 * 7]));
  return 0;
}

int lists(long) {
  foreign_node* list = nullptr;
  for (uint64_t i = 0; i < 50'000; ++i) {
    if (i % 2) {
      list = foreign_push(list, i);
    } else {
      auto* node = static_cast<foreign_node*>(std::malloc(sizeof(foreign_node)));
      *node = {list, i};
      list = node;
    }
  }
  uint64_t sum = 0;
  for (foreign_node* node = list; node;) {
    sum = mix(sum, node->value);
    foreign_node* next = node->next;
    std::free(node);  // of either allocator
    node = next;
  }
  print_sum("sum", sum);
  return 0;
}

int callbacks(long) {
  std::vector<uint64_t> words(300'000);
  for (size_t i = 0; i < words.size(); ++i) words[i] = (i * 2654435761u) % 1'000'003;
  struct Seen {
    std::vector<uint64_t> values;
    size_t calls = 0;
  };
  auto* seen = new Seen;
  foreign_each(
      words.data(), words.size(),
      [](const uint64_t* word, void* context) {
        auto* to = static_cast<Seen*>(context);
        if (to->calls++ % 3 == 0) to->values.push_back(*word);
      },
      seen);
  uint64_t sum = seen->calls;
  for (uint64_t value : seen->values) sum = mix(sum, value);
  print_sum("each", sum);
  delete seen;
  size_t compared = 0;
  qsort_r(
      words.data(), words.size(), sizeof(uint64_t),
      [](const void* a, const void* b, void* context) {
        ++*static_cast<size_t*>(context);
        uint64_t x, y;
        std::memcpy(&x, a, 8), std::memcpy(&y, b, 8);
        return x < y ? -1 : x > y;
      },
      &compared);
  sum = compared > words.size();
  for (uint64_t word : words) sum = mix(sum, word);
  print_sum("qsort_r", sum);
  std::qsort(words.data(), words.size(), 8, [](const void* a, const void* b) {
    uint64_t x = *static_cast<const uint64_t*>(a), y = *static_cast<const uint64_t*>(b);
    return x > y ? -1 : x < y;
  });
  uint64_t key = words[1234];
  auto* found = static_cast<uint64_t*>(
      std::bsearch(&key, words.data(), words.size(), 8, [](const void* a, const void* b) {
        uint64_t x = *static_cast<const uint64_t*>(a), y = *static_cast<const uint64_t*>(b);
        return x > y ? -1 : x < y;
      }));
  std::printf("found %d, first %llu\n", found && *found == key, static_cast<unsigned long long>(words[0]));
  return 0;
}

int patterns(long) {
  std::string text;
  for (int i = 0; i < 4'000; ++i) text += "key" + std::to_string(i) + "=value" + std::to_string(i * 7) + "; ";
  regex_t compiled;
  if (regcomp(&compiled, "key([0-9]+)=value(777[0-9]);", REG_EXTENDED) != 0) return 1;
  auto* matches = static_cast<regmatch_t*>(std::malloc(3 * sizeof(regmatch_t)));
  int result = regexec(&compiled, text.c_str(), 3, matches, 0);
  std::printf("regexec %d %d %d\n", result, matches[1].rm_so, matches[2].rm_eo);
  regfree(&compiled);
  std::regex pattern("key(\\d+9)=value(\\d*5);");
  int count = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    count += std::stoi((*at)[1]);
  std::printf("regex %d\n", count);
  return 0;
}

constexpr Part kParts[] = {{"arrays", arrays},       {"own_fault_handler", own_fault_handler},
                           {"together", together},   {"lists", lists},
                           {"callbacks", callbacks}, {"patterns", patterns}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
