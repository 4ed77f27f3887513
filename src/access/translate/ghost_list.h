// How large a thread's SATC should be while the cache must evict: as small as it can be without regret.
//
// A pinned block can be neither evicted nor written behind, so an idle pin costs the cache; but a
// block that left the SATC and is asked for again soon costs a trip to the shared cache. The list
// remembers the blocks that left last (one slot each by the block's number, later ones overwrite);
// a miss on one of them is a regret. Every kPeriodMisses misses the number of ways goes up by one
// when at least kRegretsMany of them were regrets, down by one when at most kRegretsFew were.
//
// Invariant: kPressedWaysMin <= ways() <= kSatcWays.
// Threads: one. Lifetime: the SATC's. Limits: as many slots as the SATC has entries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "access/translate/pin_budget.h"
#include "base/ids.h"

namespace spw::access {

class GhostList {
 public:
  static constexpr uint32_t kPressedWaysMin = 1;
  static constexpr uint32_t kPeriodMisses = 1024;
  static constexpr uint32_t kRegretsMany = kPeriodMisses / 8;
  static constexpr uint32_t kRegretsFew = kPeriodMisses / 32;

  // `memory`: bytes_for(shape) zeroed bytes.
  GhostList(const SatcShape& shape, void* memory)
      : slots_(static_cast<uint32_t*>(memory)), count_(shape.entries()) {}
  static size_t bytes_for(const SatcShape& shape) { return size_t{shape.entries()} * sizeof(uint32_t); }

  void left(BlockId block) { slots_[slot_of(block)] = tag_of(block); }

  // A miss while the cache must evict.
  void missed(BlockId block) {
    regrets_ += slots_[slot_of(block)] == tag_of(block);
    if (++misses_ < kPeriodMisses) return;
    if (regrets_ >= kRegretsMany && ways_ < kSatcWays) ++ways_;
    if (regrets_ <= kRegretsFew && ways_ > kPressedWaysMin) --ways_;
    misses_ = regrets_ = 0;
  }

  uint32_t ways() const { return ways_; }

 private:
  static uint32_t tag_of(BlockId block) { return static_cast<uint32_t>(block.value) + 1; }
  size_t slot_of(BlockId block) const { return block.value % count_; }

  uint32_t* slots_;  // block + 1, modulo 2^32, or 0
  uint64_t count_;
  uint32_t ways_ = kPressedWaysMin;
  uint32_t misses_ = 0;
  uint32_t regrets_ = 0;
};

}  // namespace spw::access
