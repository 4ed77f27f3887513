// Fills more managed memory than the cap and checks every word: what a failing store must not spoil unnoticed.
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

// As fill, but touches managed memory, says so, and goes on when a line has come.
int fill_when_told(long mebibytes) {
  Words words = allocate(mebibytes);
  words.at[0] = 1;
  std::puts("ready");
  std::fflush(stdout);
  if (std::getchar() == EOF) return 98;
  return report(fill_and_check(words, 0));
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

// Rounds of arrays larger than the cap, filled, checked and freed. Says how many it has done after each tenth.
int come_back(long rounds) {
  uint64_t wrong = 0;
  for (long round = 0; round < rounds; ++round) {
    Words words = allocate(9 + round % 4);
    for (uint64_t i = 0; i < words.count; i += 64) words.at[i] = word_of(i, static_cast<uint64_t>(round));
    for (uint64_t i = 0; i < words.count; i += 64)
      wrong += words.at[i] != word_of(i, static_cast<uint64_t>(round));
    std::free(words.at);
    if (round % 10 == 9) {
      std::puts("ten");
      std::fflush(stdout);
      if (std::getchar() == EOF) return 98;
    }
  }
  return report(wrong);
}

// Arrays far smaller than the cap: nothing of them ever needs to be written.
int small_rounds(long rounds) {
  uint64_t wrong = 0;
  for (long round = 0; round < rounds; ++round) wrong += fill_and_check(allocate(1), 3), std::fflush(stdout);
  return report(wrong);
}

const Part kParts[] = {{"fill", fill},       {"fill_when_told", fill_when_told}, {"fill_by_threads", fill_by_threads},
                       {"scatter", scatter}, {"come_back", come_back},           {"small_rounds", small_rounds}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
