// Two threads that read an array a known number of times; the second is still there when the program ends.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr size_t kWords = 1 << 16;
constexpr uint64_t kReads = 1'000'000;

// Hops that no loop transformation can foresee: each read is a translation of its own.
uint64_t wander(const uint64_t* words) {
  uint64_t at = 0;
  for (uint64_t i = 0; i < kReads; ++i) at = (words[at] + i) % kWords;
  return at;
}

}  // namespace

int main() {
  std::vector<uint64_t> words(kWords);
  for (size_t i = 0; i < kWords; ++i) words[i] = i * 2654435761u;
  std::atomic<uint64_t> theirs{UINT64_MAX};
  std::thread([&] {
    theirs = wander(words.data());
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }).detach();
  while (theirs == UINT64_MAX) std::this_thread::yield();
  std::printf("%d\n", wander(words.data()) == theirs);
  std::exit(0);  // with `words` alive for the thread
}
