// How long misses took: a histogram a thread, summed when read. It costs two additions and, at a new worst, a store.
//
// Classes: 2^kPerOctaveShift to each doubling of time, so a quantile is at most an eighth above the true one.
//
//     ns      below 256   256 ..  288 ..   ...   480 ..  512 ..  576 ..   ...   2^kOctavesEnd and more
//     class   0           1       2        ...   8       9       10       ...   kClasses - 1
//
// Threads: a thread adds to its own with relaxed loads and stores; any thread may read at any time (counters.h).
// Lifetime: the block's of counters that it is part of.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "base/atomic.h"

namespace spw::telemetry {

inline constexpr unsigned kOctavesBegin = 8, kOctavesEnd = 36, kPerOctaveShift = 3;
inline constexpr size_t kClasses = ((kOctavesEnd - kOctavesBegin) << kPerOctaveShift) + 2;

constexpr size_t latency_class(uint64_t ns) {
  if (ns >> kOctavesBegin == 0) return 0;
  const unsigned octave = static_cast<unsigned>(std::bit_width(ns)) - 1;
  if (octave >= kOctavesEnd) return kClasses - 1;
  const uint64_t part = (ns >> (octave - kPerOctaveShift)) & ((1u << kPerOctaveShift) - 1);
  return 1 + ((octave - kOctavesBegin) << kPerOctaveShift) + part;
}
// The least time that is above the class.
constexpr uint64_t latency_class_end_ns(size_t index) {
  const uint64_t octave = index >> kPerOctaveShift, part = index & ((1u << kPerOctaveShift) - 1);
  return ((uint64_t{1} << kPerOctaveShift) + part) << (kOctavesBegin - kPerOctaveShift + octave);
}

struct LatencyBlock {
  std::array<Atomic<uint64_t>, kClasses> counts;
  Atomic<uint64_t> worst_ns;
  void add(uint64_t ns) {
    auto& word = counts[latency_class(ns)];
    word.store_relaxed(word.load_relaxed() + 1);
    if (ns > worst_ns.load_relaxed()) worst_ns.store_relaxed(ns);
  }
};

struct Latencies {
  std::array<uint64_t, kClasses> counts{};
  uint64_t worst_ns = 0;  // since the start

  void add(const LatencyBlock& block);
  // Those that came since `before`.
  Latencies since(const Latencies& before) const;
  uint64_t count() const;
  // The time within which the share of them was over: at most the worst; 0 where there are none.
  uint64_t quantile_ns(double share) const;
};

struct LatencySummary {
  uint64_t count = 0, p50_ns = 0, p99_ns = 0, p999_ns = 0, worst_ns = 0;
};
LatencySummary summary_of(const Latencies& latencies);

}  // namespace spw::telemetry
