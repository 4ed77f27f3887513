// Which data are in a sample: those whose hash is below a threshold,
// so all accesses of a datum are seen or none. (Waldspurger, Park,
// Garthwaite, Ahmad: "Efficient MRC construction with SHARDS", FAST 2015.)
//
// Threads: has() and rate() any; halve() one. A lower threshold leaves out data, and takes none in.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/atomic.h"
#include "locality/trace.h"

namespace spw::locality {

class Sample {
 public:
  // rate: of the data; in (0, 1].
  explicit Sample(double rate)
      : threshold_(std::max<uint64_t>(1, static_cast<uint64_t>(rate * static_cast<double>(kHashes)))) {}

  bool has(Datum datum) const { return hash(datum) < threshold_.load_relaxed(); }
  double rate() const {
    return static_cast<double>(threshold_.load_relaxed()) / static_cast<double>(kHashes);
  }
  bool can_halve() const { return threshold_.load_relaxed() > 1; }
  void halve() { threshold_.store_relaxed(threshold_.load_relaxed() / 2); }

 private:
  static constexpr unsigned kHashBits = 24;
  static constexpr uint64_t kHashes = uint64_t{1} << kHashBits;

  static uint64_t hash(Datum datum) {
    uint64_t mixed = datum * uint64_t{0xD6E8FEB86659FD93u};
    mixed ^= mixed >> 32;
    return mixed * uint64_t{0xD6E8FEB86659FD93u} >> (64 - kHashBits);
  }

  Atomic<uint64_t> threshold_;
};

}  // namespace spw::locality
