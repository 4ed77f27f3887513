// The block table: which frame holds a block. One open-addressing table of 4-byte slots for each partition, two slots a
// frame (8 bytes a cached block, nothing for an uncached one), beside one pin word a frame.
//
//      31                              0
//     +---------------+------------------+
//     |  tag of block | local frame + 1  |   0: empty. The frame field is as wide as the partition's frame count needs;
//     +---------------+------------------+   the tag is what is left, and spares probes of other blocks' pin words.
//
// Invariants:  a slot names frame f of partition p <=> f's pin word is not free and its block belongs to p
//              from a block's home slot to its own slot no slot is empty (between the owner's operations)
// Threads: insert and erase are the partition's owner's. Clients probe at any time without a lock: while the owner
//   shifts entries a client may miss an entry that is there (it then asks the owner, whose own lookup is exact), but
//   can never take a wrong one, since it pins by a compare-and-swap on the pin word, which names the block.
// Ordering: insert publishes a slot with release, so a client that sees the slot sees the pin word stored before it.
// Lifetime: fixed arrays, made once.
// Limits: frames a partition <= 2^28, so that tags have at least 3 bits.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/ids.h"
#include "cache/block_table/pin_word.h"
#include "cache/partition_map.h"
#include "platform/memory.h"

namespace spw::cache {

constexpr uint64_t group_of(BlockId block) { return block.value >> kGroupShift; }

class BlockTable {
 public:
  // `memory`: of map_memory() for the same shares.
  BlockTable(const FrameShares& shares, platform::Mapping memory);
  static Result<platform::Mapping> map_memory(const FrameShares& shares);

  const PartitionMap& map() const { return map_; }
  const FrameShares& shares() const { return shares_; }
  uint64_t metadata_bytes() const;

  AtomicPinWord& word(FrameId frame) const { return words_[frame.value]; }
  std::byte* words_memory() const { return reinterpret_cast<std::byte*>(words_); }

  // Client: pins `block` if the table shows it resident and used before. May fail though it is there.
  bool try_pin(BlockId block, bool for_write, FrameId* frame, PinWord* before) const {
    *frame = first_candidate(block, slots_per_partition_, [&](FrameId candidate) {
      return words_[candidate.value].try_pin(block, for_write, before);
    });
    return *frame != kNoFrame;
  }

  // Anyone: what try_pin() of `block` reads first; what it changes then.
  void prefetch_slot(BlockId block) const {
    __builtin_prefetch(&slots_of(map_.of(block))[probe_of(block).home]);
  }
  void prefetch_word(BlockId block) const {
    constexpr uint32_t kLookedAt = 8;
    FrameId frame = first_candidate(block, kLookedAt, [](FrameId) { return true; });
    if (frame != kNoFrame) prefetch_word(frame);
  }
  void prefetch_word(FrameId frame) const { __builtin_prefetch(&words_[frame.value], 1); }

  // Anyone: the frame that seems to hold `block`, or kNoFrame. Exact when the owner calls it.
  FrameId find(BlockId block) const;
  // Owner: `frame`, whose word already names `block`, holds it now.
  void insert(BlockId block, FrameId frame);
  // Owner: it does so no longer. The word of `frame` may have been freed already.
  void erase(BlockId block, FrameId frame);

  // SPW_CHECKs the invariants above. Only while no operation runs.
  void check_invariants() const;

 private:
  struct Probe {
    uint32_t home;
    uint32_t tag;
  };
  // Odd, with well spread bits; another one than PartitionMap's, so
  // that a partition's blocks spread over all its slots.
  static constexpr uint64_t kBlockFactor = 0xD6E8FEB86659FD93u;

  Probe probe_of(BlockId block) const {
    uint64_t hash = block.value * kBlockFactor;
    auto home = static_cast<uint32_t>(((hash >> 32) * slots_per_partition_) >> 32);
    return {home, static_cast<uint32_t>(hash) & ~frame_mask_};
  }
  // The first frame that a slot names with the block's tag and that `accept(frame)` takes, among `steps_max` slots from
  // its home on and up to the first empty one; or kNoFrame.
  template <class Accept>
  FrameId first_candidate(BlockId block, uint32_t steps_max, Accept accept) const {
    PartitionId partition = map_.of(block);
    Probe probe = probe_of(block);
    const Atomic<uint32_t>* slots = slots_of(partition);
    for (uint32_t i = probe.home, steps = 0; steps < steps_max; ++steps, i = next(i)) {
      uint32_t slot = slots[i].load_acquire();
      if (slot == 0) break;
      if ((slot & ~frame_mask_) != probe.tag) continue;
      FrameId frame = frame_in(partition, slot);
      if (accept(frame)) return frame;
    }
    return kNoFrame;
  }
  FrameId frame_in(PartitionId partition, uint32_t slot) const {
    return FrameId(shares_.first(partition).value + (slot & frame_mask_) - 1);
  }
  uint32_t next(uint32_t i) const { return i + 1 == slots_per_partition_ ? 0 : i + 1; }
  Atomic<uint32_t>* slots_of(PartitionId partition) const {
    return &slots_[static_cast<uint64_t>(partition.value) * slots_per_partition_];
  }
  void check_partition(PartitionId partition) const;

  FrameShares shares_;
  PartitionMap map_;
  uint32_t slots_per_partition_;
  uint32_t frame_mask_;       // of a slot
  platform::Mapping memory_;  // of both arrays: zeroed, in huge pages where there are any
  AtomicPinWord* words_;
  Atomic<uint32_t>* slots_;
};

}  // namespace spw::cache
