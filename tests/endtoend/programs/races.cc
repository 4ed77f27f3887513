// Threads that meet at blocks which come and go.
#include <sys/mman.h>

#include <atomic>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

constexpr int kThreads = 8;
constexpr size_t kPageWords = 4096 / sizeof(uint64_t);

uint64_t next_random(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

template <class Body>
void run_threads(Body body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([=] { body(t); });
  for (auto& thread : threads) thread.join();
}

// All threads go to the same page at the same time, half of them to store, for every page of more than the cap.
int one_block(long rounds) {
  constexpr size_t kPages = 3'000;
  auto* words = static_cast<uint64_t*>(std::calloc(kPages * kPageWords, sizeof(uint64_t)));
  std::barrier together(kThreads);
  std::atomic<uint64_t> read{0};
  run_threads([&](int t) {
    uint64_t sum = 0;
    for (long round = 0; round < rounds; ++round)
      for (size_t page = static_cast<size_t>(round) % 7; page < kPages; page += 7) {
        together.arrive_and_wait();
        uint64_t* own = words + page * kPageWords + static_cast<size_t>(t) * 8;
        if (t % 2 == 0)
          own[0] += static_cast<uint64_t>(round) + page;
        else
          sum += own[1] + 1;
      }
    read += sum;
  });
  uint64_t sum = read;
  for (size_t i = 0; i < kPages * kPageWords; ++i) sum = mix(sum, words[i]);
  print_sum("sum", sum);
  return 0;
}

// Each thread adds to words of its own in pages that all of them share, in an order of its own, while pages are evicted
// all the time; a store that is lost leaves its word behind what the thread remembers.
int stores(long operations) {
  constexpr size_t kPages = 5'000;
  auto* words = static_cast<uint64_t*>(std::calloc(kPages * kPageWords, sizeof(uint64_t)));
  std::atomic<uint64_t> lost{0};
  run_threads([&](int t) {
    std::vector<uint32_t> expected(kPages);
    uint64_t random = 88172645463325252u + static_cast<uint64_t>(t);
    // Near where it was before, mostly, so that pages are stored to while they are on their way out.
    uint64_t place = next_random(random) % kPages;
    for (long i = 0; i < operations / kThreads; ++i) {
      place = i % 61 == 0 ? next_random(random) % kPages : (place + next_random(random) % 3) % kPages;
      uint64_t& word = words[place * kPageWords + static_cast<size_t>(t) * 8];
      if (word != expected[place]) ++lost;
      word = ++expected[place];
    }
    for (size_t page = 0; page < kPages; ++page)
      if (words[page * kPageWords + static_cast<size_t>(t) * 8] != expected[page]) ++lost;
  });
  print_sum("lost", lost);
  return 0;
}

// Mappings are given back the moment the last access has returned,
// while what it made the runtime read ahead is under way.
int unmap(long rounds) {
  constexpr size_t kBytes = 16 << 20;
  uint64_t wrong = 0;
  for (long round = 0; round < rounds; ++round) {
    void* got = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) return 1;
    auto* words = static_cast<uint64_t*>(got);
    std::atomic<uint64_t> sum{0};
    run_threads([&](int t) {
      uint64_t own = 0;
      const size_t share = kBytes / sizeof(uint64_t) / kThreads;
      for (size_t i = 0; i < share; i += kPageWords) {
        uint64_t& word = words[static_cast<size_t>(t) * share + i];
        own += word;  // zero, whatever lay here before
        word = static_cast<uint64_t>(round) + 1;
      }
      sum += own;
    });
    for (size_t i = 0; i < kBytes / sizeof(uint64_t) / 4; i += kPageWords)
      wrong += words[i] != static_cast<uint64_t>(round) + 1;
    wrong += sum;
    munmap(got, kBytes);
  }
  print_sum("wrong", wrong);
  return 0;
}

constexpr Part kParts[] = {{"one_block", one_block}, {"stores", stores}, {"unmap", unmap}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
