// Ghosts: which blocks left memory last, without their contents. A
// block that comes back while it is remembered was needed all the time.
//
// A set-associative table of 32-bit fingerprints, each with the number of departures before it. One is remembered for
// `capacity` departures, unless its set runs full of younger ones. Two blocks with one fingerprint are taken for each
// other, and after 2^32 departures so are old ones for new ones: either costs a block's rank, no more.
// Threads: none (policy.h). Memory: 8 bytes for each to be remembered, rounded up to a set. Constant time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace spw::cache {

class Ghosts {
 public:
  using Fingerprint = uint32_t;

  explicit Ghosts(uint32_t capacity)
      : capacity_(capacity), sets_((capacity + kWays - 1) / kWays), entries_(uint64_t{sets_} * kWays) {}

  static Fingerprint of(BlockId block) {
    return static_cast<Fingerprint>((block.value * uint64_t{0x9E3779B97F4A7C15u}) >> 32);
  }
  void left(Fingerprint block);
  // Whether it left not long ago. It is forgotten then.
  bool came_back(Fingerprint block);

  uint64_t metadata_bytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  static constexpr uint32_t kWays = 8;  // of 8 bytes: a line
  struct Entry {
    Fingerprint block = 0;
    uint32_t number = 0;  // of its departure, from 1; 0: none
  };
  Entry* set_of(Fingerprint block) { return &entries_[(uint64_t{block} * sets_ >> 32) * kWays]; }
  uint32_t age(const Entry& entry) const {
    return entry.number == 0 ? UINT32_MAX : departures_ - entry.number;
  }

  const uint32_t capacity_;
  const uint32_t sets_;
  std::vector<Entry> entries_;
  uint32_t departures_ = 0;
};

}  // namespace spw::cache
