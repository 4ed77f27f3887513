// A radix sort, from the lowest byte to the highest, and the stable parallel scatter it consists of.
#pragma once

#include <omp.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/options.h"
#include "common/random.h"
#include "micro/harness.h"

namespace examples {

// Moves elements to the bucket that a function of theirs names, keeping their order within a bucket. Each thread
// reads one stretch of the input in order, and writes each bucket in order.
//
// Threads: run() by all threads of a parallel region together.
class Scatter {
 public:
  Scatter(uint64_t buckets, int threads)
      : buckets_(buckets), threads_(threads), place_(static_cast<size_t>(threads)), begin_(buckets + 1) {}

  template <class Element, class BucketOf>
  void run(const Element* from, Element* to, uint64_t count, int thread, BucketOf bucket_of) {
    const Share share(count, thread, threads_);
    std::vector<uint64_t>& mine = place_[static_cast<size_t>(thread)];
    mine.assign(buckets_, 0);
    for (uint64_t i = share.begin; i < share.end; ++i) ++mine[bucket_of(from[i])];
#pragma omp barrier
#pragma omp single
    give_places();
    uint64_t* const next = mine.data();
    for (uint64_t i = share.begin; i < share.end; ++i) to[next[bucket_of(from[i])]++] = from[i];
#pragma omp barrier
  }

  // Where bucket `b` of the last run begins; that of `buckets` is the end.
  uint64_t begin(uint64_t b) const { return begin_[b]; }

 private:
  void give_places() {
    uint64_t next = 0;
    for (uint64_t b = 0; b < buckets_; ++b) {
      begin_[b] = next;
      for (auto& of_thread : place_) next += std::exchange(of_thread[b], next);
    }
    begin_[buckets_] = next;
  }

  const uint64_t buckets_;
  const int threads_;
  std::vector<std::vector<uint64_t>> place_;  // by thread, then by bucket
  std::vector<uint64_t> begin_;
};

// Sorts 64-bit elements by their upper half, as pairs of a key and a value: four passes between two arrays, which share
// the bytes. Ends the program where the result is out of order.
inline Measured radix_sort(const Settings& settings) {
  const uint64_t count = settings.bytes / 2 / sizeof(uint64_t);
  const std::unique_ptr<uint64_t[]> words(new uint64_t[count]);
  const std::unique_ptr<uint64_t[]> others(new uint64_t[count]);
  const auto prepare = [&] {
#pragma omp parallel for schedule(static) num_threads(settings.threads)
    for (uint64_t i = 0; i < count; ++i) words[i] = random_at(1, i) << 32 | i >> 8;
  };
  Scatter scatter(256, settings.threads);
  const Measured measured = measure(settings, count, prepare, [&](int thread) {
    uint64_t* from = words.get();
    uint64_t* to = others.get();
    for (int shift = 32; shift < 64; shift += 8, std::swap(from, to))
      scatter.run(from, to, count, thread, [shift](uint64_t word) { return word >> shift & 255; });
    const Share share(count, thread, settings.threads);
    return from[share.begin + (share.end - share.begin) / 2];
  });
  uint64_t unordered = 0;
#pragma omp parallel for schedule(static) num_threads(settings.threads) reduction(+ : unordered)
  for (uint64_t i = 1; i < count; ++i)
    if (words[i] < words[i - 1]) ++unordered;
  if (unordered != 0) fail("radix-sort: wrong order");
  return measured;
}

}  // namespace examples
