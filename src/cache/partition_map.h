// Which partition owns a block, and which frames it has for them: pure functions of numbers, shared by the cache and
// the SATCs above it.
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

// Partition p has frames [first(p), first(p) + of(p)): each() of them, and the last one what is left.
class FrameShares {
 public:
  // `unit`: so many frames stay together; those beyond a multiple of it are left out.
  explicit FrameShares(uint32_t frames, uint32_t partitions = 1, uint32_t unit = 1)
      : partitions_(partitions),
        unit_(unit),
        frame_count_(frames / unit * unit),
        each_((frames / unit + partitions - 1) / partitions * unit) {}

  uint32_t partitions() const { return partitions_; }
  uint32_t frame_count() const { return frame_count_; }
  uint32_t each() const { return each_; }
  FrameId first(PartitionId partition) const { return FrameId(partition.value * each_); }
  uint32_t of(PartitionId partition) const { return std::min(each_, frame_count_ - first(partition).value); }
  uint32_t of_smallest() const { return of(PartitionId(partitions_ - 1)); }
  PartitionId partition_of(FrameId frame) const { return PartitionId(frame.value / each_); }
  bool is_for_all() const { return uint64_t{each_} * (partitions_ - 1) < frame_count_; }
  // The last one has about what the others have, as it should, since blocks are spread evenly.
  bool is_even() const {
    return is_for_all() && of_smallest() >= each_ - each_ / unit_ / kMayLackShare * unit_;
  }

 private:
  static constexpr uint32_t kMayLackShare = 8;
  uint32_t partitions_;
  uint32_t unit_;
  uint32_t frame_count_;
  uint32_t each_;
};

}  // namespace spw::cache
