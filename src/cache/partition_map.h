// Which partition owns a block: a pure function of the block number, shared by the cache and the SATCs above
// it.
//
// Blocks of one aligned group of kGroupBlocks share a partition, so that neighbours are read and written in
// one request by one owner.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "base/ids.h"
#include "base/units.h"

namespace spw::cache {

inline constexpr unsigned kGroupShift = 6;
inline constexpr uint64_t kGroupBlocks = uint64_t{1} << kGroupShift;

class PartitionMap {
 public:
  explicit PartitionMap(uint32_t partitions = 1) : mask_(partitions - 1) {
    SPW_CHECK(is_power_of_two(partitions));
  }

  uint32_t count() const { return mask_ + 1; }
  PartitionId of(BlockId block) const {
    uint64_t group = block.value >> kGroupShift;
    return PartitionId(static_cast<uint32_t>((group * 0x9E3779B97F4A7C15u) >> 40) & mask_);
  }

 private:
  uint32_t mask_;
};

}  // namespace spw::cache
