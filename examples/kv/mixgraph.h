// The mix of operations on a key-value store that Facebook found in production (Cao et
// al., "Characterizing, modeling, and benchmarking RocksDB key-value workloads", FAST
// 2020), with its distribution of hot ranges of keys: 83 % reads, 14 % writes, 3 % scans.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "common/random.h"
#include "kv/table.h"

namespace examples {

enum class Operation : uint8_t { kGet, kPut, kScan };

class MixGraph {
 public:
  explicit MixGraph(uint64_t keys) : keys_(keys) {
    // How hot a range of keys is: the sum of two exponentials, of ranges that lie in no order.
    constexpr double kA = 14.18, kB = -2.917, kC = 0.0164, kD = -0.08082;
    double sum = 0;
    for (size_t range = 0; range < kRanges; ++range) {
      const auto x = static_cast<double>(range + 1);
      sum += kA * std::exp(kB * x) + kC * std::exp(kD * x);
      below_[range] = sum;
    }
    for (double& bound : below_) bound /= sum;
  }

  Operation operation(uint64_t seed, uint64_t i) const {
    const uint64_t percent = random_at(seed, 4 * i) % 100;
    return percent < 83 ? Operation::kGet : percent < 97 ? Operation::kPut : Operation::kScan;
  }

  uint64_t key(uint64_t seed, uint64_t i) const {
    const double which = unit(random_at(seed, 4 * i + 1));
    const auto rank =
        static_cast<uint64_t>(std::upper_bound(below_.begin(), below_.end(), which) - below_.begin());
    const uint64_t range = std::min<uint64_t>(rank, kRanges - 1) * kSpread % kRanges;
    // Within a range a few keys are hotter than the others: a power law of their rank, whose places are scattered.
    const uint64_t per_range = keys_ / kRanges;
    const double u = unit(random_at(seed, 4 * i + 2));
    const auto place = static_cast<uint64_t>(static_cast<double>(per_range) * std::pow(u, kPower));
    return range * per_range + mix(place) % per_range;
  }

  uint64_t scan_rows(uint64_t seed, uint64_t i) const { return 1 + random_at(seed, 4 * i + 3) % 64; }

 private:
  static constexpr size_t kRanges = 30;
  static constexpr uint64_t kSpread = 7;  // prime to kRanges
  static constexpr double kPower = 2.88;  // 1 / 0.3467, the exponent that was fitted

  const uint64_t keys_;
  std::array<double, kRanges> below_{};
};

}  // namespace examples
