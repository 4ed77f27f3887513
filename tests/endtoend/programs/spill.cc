// Fills more managed memory than the cap and checks every word: what a failing store must not spoil unnoticed.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

uint64_t word_of(uint64_t index, uint64_t round) { return (index + 1) * 0x9E3779B97F4A7C15u + round; }

struct Words {
  uint64_t* at;
  uint64_t count;
};

Words allocate(long mebibytes) {
  uint64_t bytes = static_cast<uint64_t>(mebibytes) << 20;
  return {static_cast<uint64_t*>(std::malloc(bytes)), bytes / 8};
}

// Writes all words and reads them back; the number of wrong ones.
uint64_t fill_and_check(Words words, uint64_t round) {
  for (uint64_t i = 0; i < words.count; ++i) words.at[i] = word_of(i, round);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < words.count; ++i) wrong += words.at[i] != word_of(i, round);
  return wrong;
}

int report(uint64_t wrong) {
  std::printf("wrong %llu\n", static_cast<unsigned long long>(wrong));
  return wrong == 0 ? 0 : 1;
}

int fill(long mebibytes) { return report(fill_and_check(allocate(mebibytes), 0)); }

void wait_for_a_look() {
  std::puts("look");
  std::fflush(stdout);
  if (std::getchar() == EOF) std::exit(98);
}

// As fill, but waits before it, when managed memory has been touched.
int fill_when_told(long mebibytes) {
  Words words = allocate(mebibytes);
  words.at[0] = 1;
  wait_for_a_look();
  return report(fill_and_check(words, 0));
}

// Likewise, and ends without the end of a program.
int fill_and_leave(long mebibytes) {
  Words words = allocate(mebibytes);
  words.at[0] = 1;
  wait_for_a_look();
  const uint64_t wrong = fill_and_check(words, 0);
  ::_exit(wrong == 0 ? 7 : 1);
}

// Goes through all of it again each time it was looked at.
int stay(long mebibytes) {
  Words words = allocate(mebibytes);
  uint64_t wrong = fill_and_check(words, 0);
  while (wrong == 0) {
    wait_for_a_look();
    for (uint64_t i = 0; i < words.count; i += 64) wrong += words.at[i] != word_of(i, 0);
  }
  return report(wrong);
}

int fill_by_threads(long mebibytes) {
  constexpr uint64_t kThreads = 4;
  Words words = allocate(mebibytes);
  std::vector<uint64_t> wrong(kThreads);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      uint64_t share = words.count / kThreads;
      wrong[t] = fill_and_check({words.at + t * share, share}, t);
    });
  uint64_t sum = 0;
  for (uint64_t t = 0; t < kThreads; ++t) threads[t].join(), sum += wrong[t];
  return report(sum);
}

// Stores all over the place. Each word says how often it was stored to, and the sum of that is known.
int scatter(long mebibytes) {
  constexpr uint64_t kStores = 600;
  Words words = allocate(mebibytes);
  for (uint64_t i = 0; i < words.count; ++i) words.at[i] = word_of(i, 0);
  uint64_t state = 7, wrong = 0, sum = 0;
  for (uint64_t i = 0; i < kStores; ++i) {
    uint64_t at = next_random(&state) % words.count;
    uint64_t round = words.at[at] - word_of(at, 0);
    wrong += round > kStores;
    words.at[at] = word_of(at, round + 1);
  }
  for (uint64_t i = 0; i < words.count; ++i) sum += words.at[i] - word_of(i, 0);
  std::printf("stores %llu\n", static_cast<unsigned long long>(sum));
  return report(wrong);
}

// Rounds of arrays larger than the cap, filled, checked and freed; a small one stays alive from each round to the next,
// so that the arrays do not simply take the place of the one before. After each tenth it waits to be looked at.
int come_back(long rounds) {
  uint64_t wrong = 0;
  uintptr_t least = UINTPTR_MAX, most = 0;
  void* small = nullptr;
  for (long round = 0; round < rounds; ++round) {
    Words words = allocate(9 + round % 4);
    auto value = static_cast<uint64_t>(round);
    for (uint64_t i = 0; i < words.count; i += 64) words.at[i] = word_of(i, value);
    for (uint64_t i = 0; i < words.count; i += 64) wrong += words.at[i] != word_of(i, value);
    least = std::min(least, reinterpret_cast<uintptr_t>(words.at));
    most = std::max(most, reinterpret_cast<uintptr_t>(words.at + words.count));
    void* next_small = std::malloc(static_cast<size_t>(5000 + round % 7 * 100'000));
    std::free(small);
    small = next_small;
    std::free(words.at);
    if (round % (rounds / 10) == 0) wait_for_a_look();
  }
  std::printf("addresses span %llu MiB\n", static_cast<unsigned long long>((most - least) >> 20));
  return report(wrong);
}

// Fills that many arrays of a MiB and frees every other one, then the rest.
int give_back(long count) {
  std::vector<Words> arrays(static_cast<size_t>(count));
  uint64_t wrong = 0;
  for (Words& words : arrays) wrong += fill_and_check(words = allocate(1), 1);
  wait_for_a_look();
  for (size_t i = 0; i < arrays.size(); i += 2) std::free(arrays[i].at);
  wait_for_a_look();
  for (size_t i = 1; i < arrays.size(); i += 2) {
    for (uint64_t w = 0; w < arrays[i].count; w += 64) wrong += arrays[i].at[w] != word_of(w, 1);
    std::free(arrays[i].at);
  }
  wait_for_a_look();
  return report(wrong);
}

// Rounds of arrays that fit into the cap two at a time.
int small_rounds(long rounds) {
  uint64_t wrong = 0;
  Words before = allocate(1);
  for (long round = 0; round < rounds; ++round) {
    Words words = allocate(1 + round % 2);
    wrong += fill_and_check(words, static_cast<uint64_t>(round));
    std::free(before.at);
    before = words;
  }
  return report(wrong);
}

// Reads for three seconds at random what was written last, which is more than the cap.
int use_the_end(long mebibytes) {
  const Words words = allocate(mebibytes);
  for (uint64_t i = 0; i < words.count; ++i) words.at[i] = word_of(i, 0);
  constexpr uint64_t kUsed = (uint64_t{12} << 20) / sizeof(uint64_t);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (uint64_t state = thread + 1; std::chrono::steady_clock::now() < end;) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t index = words.count - 1 - (state >> 33) % kUsed;
        wrong += words.at[index] != word_of(index, 0);
      }
    });
  for (std::thread& thread : threads) thread.join();
  return report(wrong);
}

const Part kParts[] = {{"fill", fill},
                       {"fill_when_told", fill_when_told},
                       {"fill_and_leave", fill_and_leave},
                       {"stay", stay},
                       {"fill_by_threads", fill_by_threads},
                       {"use_the_end", use_the_end},
                       {"scatter", scatter},
                       {"come_back", come_back},
                       {"give_back", give_back},
                       {"small_rounds", small_rounds}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
