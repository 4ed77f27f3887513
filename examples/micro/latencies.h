// How long single operations took: counts in classes, from which percentiles are read.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "common/report.h"

namespace examples {

inline uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// There are 32 classes to each power of two, so a percentile is at most 3 % too high. 16 KiB, for a thread's stack:
// that is never managed memory.
class Latencies {
 public:
  void add(uint64_t ns) {
    ++counts_[class_of(ns)];
    worst_ns_ = std::max(worst_ns_, ns);
  }

  void add(const Latencies& other) {
    for (uint64_t i = 0; i < kClasses; ++i) counts_[i] += other.counts_[i];
    worst_ns_ = std::max(worst_ns_, other.worst_ns_);
  }

  // Of the slowest `percent` of all operations: where so many miss, of the misses.
  Json report(uint64_t percent) const {
    return Json()
        .add("p50", percentile_ns(percent, 0.5))
        .add("p99", percentile_ns(percent, 0.99))
        .add("p99.9", percentile_ns(percent, 0.999))
        .add("worst", worst_ns_);
  }

 private:
  static constexpr int kBits = 5;  // classes to a power of two: 2^kBits
  static constexpr uint64_t kPerPower = uint64_t{1} << kBits;
  static constexpr uint64_t kClasses = (64 - kBits + 1) * kPerPower;

  // Times below kPerPower have a class each; above, the leading bit chooses the group, the kBits behind it the class.
  static uint64_t class_of(uint64_t ns) {
    if (ns < kPerPower) return ns;
    const int shift = 63 - __builtin_clzll(ns) - kBits;
    return (static_cast<uint64_t>(shift) + 1) * kPerPower + (ns >> shift & (kPerPower - 1));
  }

  static uint64_t highest_of(uint64_t index) {
    if (index < kPerPower) return index;
    const uint64_t shift = index / kPerPower - 1;
    return ((kPerPower + index % kPerPower + 1) << shift) - 1;
  }

  uint64_t percentile_ns(uint64_t percent, double share) const {
    uint64_t all = 0;
    for (const uint64_t count : counts_) all += count;
    const double slowest = static_cast<double>(all) * static_cast<double>(percent) / 100;
    const double faster = static_cast<double>(all) - slowest * (1 - share);
    uint64_t below = 0;
    for (uint64_t i = 0; i < kClasses; ++i) {
      below += counts_[i];
      if (static_cast<double>(below) >= faster) return std::min(highest_of(i), worst_ns_);
    }
    return worst_ns_;
  }

  std::array<uint64_t, kClasses> counts_{};
  uint64_t worst_ns_ = 0;
};

}  // namespace examples
