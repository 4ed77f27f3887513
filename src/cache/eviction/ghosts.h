// Ghosts: which blocks left memory last, without their contents. A
// block that comes back while it is remembered was needed all the time.
//
// A set-associative table of 32-bit fingerprints, a line to a set, each with the number of departures before it. One is
// remembered for `capacity` departures, unless its set runs full of younger ones. Two blocks with one fingerprint are
// taken for each other, and after 2^32 departures so are old ones for new ones: either costs a block's rank, no more.
// Threads: none (policy.h). Memory: 8 bytes for each to be remembered, rounded up to a set. Constant time.
#pragma once

#include <cstdint>
#include <memory>

#include "base/ids.h"

namespace spw::cache {

class Ghosts {
 public:
  using Fingerprint = uint32_t;

  explicit Ghosts(uint32_t capacity)
      : capacity_(capacity),
        set_count_((capacity + kWays - 1) / kWays),
        sets_(std::make_unique<Set[]>(set_count_)) {}

  static Fingerprint of(BlockId block) {
    return static_cast<Fingerprint>((block.value * uint64_t{0x9E3779B97F4A7C15u}) >> 32);
  }
  void left(Fingerprint block);
  // So many departures more, of blocks that are not to be remembered.
  void pass(uint32_t departures) { departures_ += departures; }
  // Whether it left not long ago. It is forgotten then.
  bool came_back(Fingerprint block);

  void prefetch(Fingerprint block) const { __builtin_prefetch(set_of(block), 1); }
  uint64_t metadata_bytes() const { return set_count_ * sizeof(Set); }

 private:
  static constexpr uint32_t kWays = 8;
  struct Entry {
    Fingerprint block = 0;
    uint32_t number = 0;  // of its departure, from 1; 0: none
  };
  struct alignas(64) Set {
    Entry entries[kWays];
  };
  Entry* set_of(Fingerprint block) const { return sets_[uint64_t{block} * set_count_ >> 32].entries; }
  uint32_t age(const Entry& entry) const {
    return entry.number == 0 ? UINT32_MAX : departures_ - entry.number;
  }

  const uint32_t capacity_;
  const uint32_t set_count_;
  const std::unique_ptr<Set[]> sets_;
  uint32_t departures_ = 0;
};

}  // namespace spw::cache
