// Data of which most compresses, some is zeros and some is noise, on more memory than the cap.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "parts.h"

namespace {

constexpr size_t kPageWords = 512;

uint64_t noise(uint64_t x) {
  x = (x ^ x >> 31) * 0x9E3779B97F4A7C15u;
  return x ^ x >> 29;
}

// Of eight pages one is zeros, one noise, and six have a word of noise in eight.
uint64_t word_of(size_t at, uint64_t salt) {
  const size_t page = at / kPageWords, kind = (page + salt) % 8;
  if (kind == 0) return 0;
  return kind == 1 || at % 8 == 0 ? noise(at * 31 + salt) : page + salt;
}

void fill(std::vector<uint64_t>& words, size_t first, size_t end, uint64_t salt) {
  for (size_t i = first; i < end; ++i) words[i] = word_of(i, salt);
}

size_t wrong(const std::vector<uint64_t>& words, size_t first, size_t end, uint64_t salt) {
  size_t found = 0;
  for (size_t i = first; i < end; ++i) found += words[i] != word_of(i, salt);
  return found;
}

int report(size_t wrong) {
  std::printf("wrong %zu\n", wrong);
  return wrong == 0 ? 0 : 1;
}

int rounds(long mebibytes) {
  constexpr size_t kThreads = 3, kRounds = 2;
  std::vector<uint64_t> words(static_cast<size_t>(mebibytes) << 17);
  const size_t share = words.size() / kThreads / kPageWords * kPageWords;
  size_t found[kThreads] = {};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t salt = t; salt < t + kRounds; ++salt) {
        fill(words, t * share, (t + 1) * share, salt);
        found[t] += wrong(words, t * share, (t + 1) * share, salt);
      }
    });
  for (std::thread& each : threads) each.join();
  return report(found[0] + found[1] + found[2]);
}

// Parent and child each change half of what they have in common, and look at all of it.
int forks(long mebibytes) {
  std::vector<uint64_t> words(static_cast<size_t>(mebibytes) << 17);
  const size_t half = words.size() / 2, all = words.size();
  size_t found = 0;
  fill(words, 0, all, 0);
  for (uint64_t salt = 1; salt < 3; ++salt) {
    const pid_t child = fork();
    if (child == 0) {
      fill(words, half, all, salt + 100);
      _exit(wrong(words, 0, half, salt - 1) + wrong(words, half, all, salt + 100) == 0 ? 0 : 1);
    }
    fill(words, 0, half, salt);
    found += wrong(words, 0, half, salt) + wrong(words, half, all, salt - 1);
    fill(words, half, all, salt);
    int status = -1;
    waitpid(child, &status, 0);
    found += status != 0;
  }
  return report(found + wrong(words, 0, all, 2));
}

// Nothing but noise, again and again.
int all_noise(long mebibytes) {
  std::vector<uint64_t> words(static_cast<size_t>(mebibytes) << 17);
  size_t found = 0;
  for (uint64_t salt = 1; salt < 5; ++salt) {
    for (size_t i = 0; i < words.size(); ++i) words[i] = noise(i * 31 + salt);
    for (size_t i = 0; i < words.size(); ++i) found += words[i] != noise(i * 31 + salt);
  }
  return report(found);
}

const Part kParts[] = {{"rounds", rounds}, {"forks", forks}, {"noise", all_noise}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
