#include "cache/block_table/block_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/units.h"

namespace spw::cache {

namespace {
constexpr uint32_t kSlotsPerFrame = 2;
constexpr uint32_t kFrameBitsMax = 29;

uint64_t bytes_for(const FrameShares& shares) {
  const uint64_t slots = uint64_t{shares.each()} * kSlotsPerFrame * shares.partitions();
  return shares.frame_count() * sizeof(AtomicPinWord) + slots * sizeof(Atomic<uint32_t>);
}

}  // namespace

Result<platform::Mapping> BlockTable::map_memory(const FrameShares& shares) {
  return platform::map_table(bytes_for(shares));
}

BlockTable::BlockTable(const FrameShares& shares, platform::Mapping memory)
    : shares_(shares),
      map_(shares.partitions()),
      slots_per_partition_(shares.each() * kSlotsPerFrame),
      frame_mask_(static_cast<uint32_t>(std::bit_ceil(uint64_t{shares.each()} + 1) - 1)),
      memory_(std::move(memory)),
      // All-zero memory is what both arrays begin as: free words, empty slots.
      words_(reinterpret_cast<AtomicPinWord*>(memory_.data())),
      slots_(reinterpret_cast<Atomic<uint32_t>*>(words_ + shares.frame_count())) {
  SPW_CHECK(std::bit_width(frame_mask_) <= static_cast<int>(kFrameBitsMax));
  SPW_CHECK(shares.is_for_all());
}

uint64_t BlockTable::metadata_bytes() const { return bytes_for(shares_); }

FrameId BlockTable::find(BlockId block) const {
  return first_candidate(block, slots_per_partition_,
                         [&](FrameId frame) { return words_[frame.value].load_relaxed().holds(block); });
}

void BlockTable::insert(BlockId block, FrameId frame) {
  PartitionId partition = map_.of(block);
  Probe probe = probe_of(block);
  Atomic<uint32_t>* slots = slots_of(partition);
  uint32_t i = probe.home;
  while (slots[i].load_relaxed() != 0) i = next(i);
  slots[i].store_release(probe.tag | (frame.value - shares_.first(partition).value + 1));
}

void BlockTable::erase(BlockId block, FrameId frame) {
  PartitionId partition = map_.of(block);
  Atomic<uint32_t>* slots = slots_of(partition);
  uint32_t wanted = frame.value - shares_.first(partition).value + 1;
  uint32_t hole = probe_of(block).home;
  while ((slots[hole].load_relaxed() & frame_mask_) != wanted) {
    SPW_CHECK(slots[hole].load_relaxed() != 0);
    hole = next(hole);
  }
  // Entries behind the hole move into it unless that would put them
  // before their home (Knuth, vol. 3, 6.4, algorithm R).
  for (uint32_t i = next(hole);; i = next(i)) {
    uint32_t slot = slots[i].load_relaxed();
    if (slot == 0) break;
    BlockId moved = words_[frame_in(partition, slot).value].load_relaxed().block();
    uint32_t home = probe_of(moved).home;
    auto distance = [&](uint32_t from, uint32_t to) {
      return to >= from ? to - from : to + slots_per_partition_ - from;
    };
    if (distance(home, i) < distance(hole, i)) continue;
    slots[hole].store_release(slot);
    hole = i;
  }
  slots[hole].store_release(0);
}

void BlockTable::check_invariants() const {
  for (uint32_t p = 0; p < map_.count(); ++p) check_partition(PartitionId(p));
}

void BlockTable::check_partition(PartitionId partition) const {
  uint32_t first = shares_.first(partition).value;
  uint32_t held = 0;
  for (uint32_t f = 0; f < shares_.of(partition); ++f) {
    PinWord word = words_[first + f].load_acquire();
    if (word.state() == FrameState::kFree) {
      SPW_CHECK(word.bits() == 0);
      continue;
    }
    ++held;
    SPW_CHECK(map_.of(word.block()) == partition);
    SPW_CHECK(find(word.block()) == FrameId(first + f));
  }
  uint32_t used = 0;
  const Atomic<uint32_t>* slots = slots_of(partition);
  for (uint32_t i = 0; i < slots_per_partition_; ++i) used += slots[i].load_relaxed() != 0;
  SPW_CHECK(used == held);
}

}  // namespace spw::cache
