// Two parallel sorts of records in memory, as one would write them for memory.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <parallel/algorithm>
#include <vector>

#include "common/progress.h"
#include "terasort/record.h"

namespace examples {

// libstdc++'s parallel multiway merge sort. It takes as much memory again.
inline void sort_one_call(Record* records, uint64_t count) {
  __gnu_parallel::sort(records, records + count, KeyLess());
}

// Leading key bits to partition by: at least the first byte, more when a bucket would exceed kBucketBytesMax.
inline int shuffle_bits(uint64_t count) {
  constexpr uint64_t kBucketBytesMax = 32 << 20;
  int bits = 8;
  while (bits < 16 && (count * sizeof(Record) >> bits) > kBucketBytesMax) ++bits;
  return bits;
}

// Partitions by the leading key bits, then sorts the buckets side by side. Takes a second buffer, which
// becomes the result; the first is freed as soon as nothing in it is needed.
//
// Each thread reads one stretch of the input in order, and writes each bucket in order.
inline std::unique_ptr<Record[]> sort_shuffle(std::unique_ptr<Record[]> input, uint64_t count,
                                              bool progress_on) {
  const int bits = shuffle_bits(count);
  const uint64_t buckets = uint64_t{1} << bits;
  const uint64_t threads = static_cast<uint64_t>(omp_get_max_threads());
  std::unique_ptr<Record[]> output(new Record[count]);
  std::vector<std::vector<uint64_t>> place(threads, std::vector<uint64_t>(buckets));
  std::vector<uint64_t> bucket_begin(buckets + 1);
  constexpr ptrdiff_t kProgressRecords = 1 << 16;
  auto shuffle_progress = std::make_unique<Progress>("shuffle", 2 * count, progress_on);

#pragma omp parallel num_threads(static_cast<int>(threads))
  {
    const uint64_t self = static_cast<uint64_t>(omp_get_thread_num());
    const Record* const begin = input.get() + count * self / threads;
    const Record* const end = input.get() + count * (self + 1) / threads;
    uint64_t* const mine = place[self].data();
    for (const Record* r = begin; r != end; ++r) {
      ++mine[key_head(*r) >> (64 - bits)];
      if ((r - begin) % kProgressRecords == 0) shuffle_progress->done(kProgressRecords);
    }
#pragma omp barrier
#pragma omp single
    {
      uint64_t next = 0;
      for (uint64_t b = 0; b < buckets; ++b) {
        bucket_begin[b] = next;
        for (uint64_t t = 0; t < threads; ++t) {
          const uint64_t size = place[t][b];
          place[t][b] = next;
          next += size;
        }
      }
      bucket_begin[buckets] = next;
    }
    Record* const out = output.get();
    for (const Record* r = begin; r != end; ++r) {
      out[mine[key_head(*r) >> (64 - bits)]++] = *r;
      if ((r - begin) % kProgressRecords == 0) shuffle_progress->done(kProgressRecords);
    }
  }
  input.reset();
  shuffle_progress.reset();

  Progress progress("buckets", count, progress_on);
#pragma omp parallel for schedule(dynamic, 1)
  for (uint64_t b = 0; b < buckets; ++b) {
    std::sort(output.get() + bucket_begin[b], output.get() + bucket_begin[b + 1], KeyLess());
    progress.done(bucket_begin[b + 1] - bucket_begin[b]);
  }
  return output;
}

}  // namespace examples
