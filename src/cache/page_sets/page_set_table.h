// The page sets of all partitions in one array, and lookups in them without a lock.
//
// Frame f is slot f % 8 of set f / 8. A block's *home* is one set of its partition. The blocks of a contiguous range
// have each set as their home equally often: every run of as many blocks as there are sets has each once, in an order
// that a hash of the run turns (as PartitionMap does with groups). So data that just fits does fit, which sets chosen
// by a hash alone would not give, and a stride of any number of blocks spreads as well.
//
// Invariants: a block is in one set at most; not at home only if the
// home's `strayed` counts it and `reach` covers the distance
// Threads: any. Who has the home's lock finds exactly; others may miss a block that comes at this moment.
// Memory: all zeros is an empty table. Limits: blocks < 2^34, sets of a partition < 2^29.
#pragma once

#include <vector>

#include "cache/page_sets/page_set.h"
#include "cache/partition_map.h"
#include "platform/memory.h"

namespace spw::cache {

// The sets of one partition.
class PageSets {
 public:
  PageSets() = default;
  PageSets(PageSet* sets, uint32_t count, uint32_t first_frame)
      : sets_(sets), count_(count), first_frame_(first_frame), inverse_(UINT64_MAX / count + 1) {}

  uint32_t count() const { return count_; }
  PageSet& operator[](uint32_t set) const { return sets_[set]; }
  FrameId frame(uint32_t set, unsigned slot) const {
    return FrameId(first_frame_ + set * kBlocksASet + slot);
  }
  uint32_t set_of(FrameId frame) const { return (frame.value - first_frame_) / kBlocksASet; }
  static unsigned slot_of(FrameId frame) { return frame.value % kBlocksASet; }
  uint32_t behind(uint32_t set, uint32_t distance) const {
    return static_cast<uint32_t>((uint64_t{set} + distance) % count_);
  }

  // `index`: the block's number among those of its partition.
  uint32_t home_of(uint64_t index) const {
    const auto run =
        count_ == 1 ? index : static_cast<uint64_t>((static_cast<unsigned __int128>(index) * inverse_) >> 64);
    const uint64_t turn = (((run * 0xD6E8FEB86659FD93u) >> 32) * count_) >> 32;
    const uint64_t set = index - run * count_ + turn;
    return static_cast<uint32_t>(set < count_ ? set : set - count_);
  }
  // The frame in `set` whose word `accept(frame, word)` takes; or kNoFrame.
  template <class Accept>
  FrameId in_set(uint32_t set, Accept accept) const {
    for (unsigned slot = 0; slot < kBlocksASet; ++slot)
      if (accept(sets_[set].words[slot])) return frame(set, slot);
    return kNoFrame;
  }
  // At home, and as far behind it as blocks have strayed.
  template <class Accept>
  FrameId first_from_home(uint32_t home, Accept accept) const {
    const FrameId at_home = in_set(home, accept);
    if (at_home != kNoFrame || sets_[home].strayed.load_acquire() == 0) [[likely]]
      return at_home;
    const uint32_t reach = sets_[home].reach.load_relaxed();
    for (uint32_t distance = 1; distance <= reach; ++distance) {
      const FrameId found = in_set(behind(home, distance), accept);
      if (found != kNoFrame) return found;
    }
    return kNoFrame;
  }

 private:
  PageSet* sets_ = nullptr;
  uint32_t count_ = 0;
  uint32_t first_frame_ = 0;
  uint64_t inverse_ = 0;  // 2^64 / count, rounded up: index / count for every index below 2^64 / count
};

class PageSetTable {
 public:
  // `shares`: in units of a set. `memory`: of map_memory() for the same ones. `counts_pins`: whether pins tell of all
  // uses; otherwise they count none (SetFrames::learn_uses).
  PageSetTable(SetRule rule, bool counts_pins, const FrameShares& shares, platform::Mapping memory);
  static Result<platform::Mapping> map_memory(const FrameShares& shares);

  SetRule rule() const { return rule_; }
  const PartitionMap& map() const { return map_; }
  const FrameShares& shares() const { return shares_; }
  const PageSets& sets_of(PartitionId partition) const { return partitions_[partition.value]; }
  std::byte* words_memory() const { return memory_.data(); }
  uint64_t metadata_bytes() const { return shares_.frame_count() / kBlocksASet * sizeof(PageSet); }

  uint32_t home_of(BlockId block) const { return home_in(sets_of(map_.of(block)), block); }

  // Counts a reference and a use if `block` is there, resident and used before. May fail though it is there.
  bool try_pin(BlockId block, bool for_write, FrameId* frame, PinWord* before) const {
    const PageSets& sets = sets_of(map_.of(block));
    *frame = sets.first_from_home(
        home_in(sets, block), [&](AtomicPinWord& word) { return word.try_pin(block, for_write, before); });
    if (*frame == kNoFrame) return false;
    if (counts_pins_) note_use(sets[sets.set_of(*frame)], PageSets::slot_of(*frame));
    return true;
  }
  FrameId find(BlockId block) const {
    const PageSets& sets = sets_of(map_.of(block));
    return sets.first_from_home(home_in(sets, block),
                                [&](AtomicPinWord& word) { return word.load_relaxed().holds(block); });
  }
  void prefetch_set(BlockId block) const {
    const PageSets& sets = sets_of(map_.of(block));
    const auto* set = reinterpret_cast<const std::byte*>(&sets[home_in(sets, block)]);
    __builtin_prefetch(set, 1);
    __builtin_prefetch(set + kCacheLineBytes / 2, 1);
  }

 private:
  uint32_t home_in(const PageSets& sets, BlockId block) const {
    return sets.home_of(map_.index_within(block));
  }
  // An order of uses needs the lock, and goes without a use now and then rather than wait for it.
  void note_use(PageSet& set, unsigned slot) const {
    if (rule_ != SetRule::kLru) return set.frequencies.note_use(rule_, slot);
    if (!set.lock.try_lock()) return;
    set.frequencies.note_use(rule_, slot);
    set.lock.unlock();
  }

  SetRule rule_;
  bool counts_pins_;
  FrameShares shares_;
  PartitionMap map_;
  platform::Mapping memory_;
  std::vector<PageSets> partitions_;
};

// The rule that the policy of this name stands for; nullopt: it is none of page sets.
std::optional<SetRule> set_rule_named(std::string_view policy);

}  // namespace spw::cache
