// Which partition owns a block: a pure function of the block number, shared by the cache and the SATCs above it.
//
// Blocks of one aligned group of kGroupBlocks share a partition, so that neighbours are read and written in one request
// by one owner. Each aligned run of as many groups as there are partitions has one group for each, in an order that a
// hash of the run turns: a contiguous range is spread evenly, and so is a stride of any number of groups.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/check.h"
#include "base/ids.h"
#include "base/units.h"

namespace spw::cache {

inline constexpr unsigned kGroupShift = 6;
inline constexpr uint64_t kGroupBlocks = uint64_t{1} << kGroupShift;

// Blocks that one request reads or writes at most: neighbours within a group.
inline constexpr uint64_t kRunBytesMax = uint64_t{1} << 20;
// Of the contents of one partition's parked blocks (partition/parking.cc),
// beside their frames: larger blocks are not parked.
inline constexpr uint64_t kParkedBytesMax = uint64_t{64} << 10;
constexpr uint32_t run_blocks_max(unsigned block_shift) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(kRunBytesMax >> block_shift, 1, kGroupBlocks));
}

class PartitionMap {
 public:
  explicit PartitionMap(uint32_t partitions = 1)
      : mask_(partitions - 1), shift_(static_cast<unsigned>(std::countr_zero(partitions))) {
    SPW_CHECK(is_power_of_two(partitions));
  }

  uint32_t count() const { return mask_ + 1; }
  PartitionId of(BlockId block) const {
    uint64_t group = block.value >> kGroupShift;
    uint64_t turn = ((group >> shift_) * 0x9E3779B97F4A7C15u) >> 40;
    return PartitionId(static_cast<uint32_t>(group + turn) & mask_);
  }
  // The block's number among those of its partition: those of a contiguous range are contiguous, but for its ends.
  uint64_t index_within(BlockId block) const {
    return (block.value >> (kGroupShift + shift_) << kGroupShift) | (block.value & (kGroupBlocks - 1));
  }

 private:
  uint32_t mask_;
  unsigned shift_;
};

}  // namespace spw::cache
