#include "cache/block_table/block_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/units.h"

namespace spw::cache {

namespace {
constexpr uint32_t kSlotsPerFrame = 2;
constexpr uint32_t kFrameBitsMax = 29;

uint32_t slots_of_partition(uint32_t frame_count, uint32_t partitions) {
  return (frame_count + partitions - 1) / partitions * kSlotsPerFrame;
}

uint64_t bytes_for(uint32_t frame_count, uint32_t partitions) {
  return frame_count * sizeof(AtomicPinWord) +
         uint64_t{slots_of_partition(frame_count, partitions)} * partitions * sizeof(Atomic<uint32_t>);
}

}  // namespace

Result<platform::Mapping> BlockTable::map_memory(uint32_t frame_count, uint32_t partitions) {
  return platform::map_table(bytes_for(frame_count, partitions));
}

BlockTable::BlockTable(uint32_t frame_count, uint32_t partitions, platform::Mapping memory)
    : frame_count_(frame_count),
      map_(partitions),
      frames_per_partition_((frame_count + partitions - 1) / partitions),
      slots_per_partition_(slots_of_partition(frame_count, partitions)),
      frame_mask_(static_cast<uint32_t>(std::bit_ceil(uint64_t{frames_per_partition_} + 1) - 1)),
      memory_(std::move(memory)),
      // All-zero memory is what both arrays begin as: free words, empty slots.
      words_(reinterpret_cast<AtomicPinWord*>(memory_.data())),
      slots_(reinterpret_cast<Atomic<uint32_t>*>(memory_.data() + frame_count * sizeof(AtomicPinWord))) {
  SPW_CHECK(std::bit_width(frame_mask_) <= static_cast<int>(kFrameBitsMax));
  SPW_CHECK(uint64_t{frames_per_partition_} * (partitions - 1) < frame_count);
}

uint32_t BlockTable::frames_of(PartitionId partition) const {
  return std::min(frames_per_partition_, frame_count_ - first_frame(partition).value);
}

uint64_t BlockTable::metadata_bytes() const { return bytes_for(frame_count_, partitions()); }

FrameId BlockTable::find(BlockId block) const {
  return first_candidate(block, slots_per_partition_,
                         [&](FrameId frame) { return words_[frame.value].load_relaxed().holds(block); });
}

void BlockTable::insert(BlockId block, FrameId frame) {
  PartitionId partition = partition_of(block);
  Probe probe = probe_of(block);
  Atomic<uint32_t>* slots = slots_of(partition);
  uint32_t i = probe.home;
  while (slots[i].load_relaxed() != 0) i = next(i);
  slots[i].store_release(probe.tag | (frame.value - first_frame(partition).value + 1));
}

void BlockTable::erase(BlockId block, FrameId frame) {
  PartitionId partition = partition_of(block);
  Atomic<uint32_t>* slots = slots_of(partition);
  uint32_t wanted = frame.value - first_frame(partition).value + 1;
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
  for (uint32_t p = 0; p < partitions(); ++p) check_partition(PartitionId(p));
}

void BlockTable::check_partition(PartitionId partition) const {
  uint32_t first = first_frame(partition).value;
  uint32_t held = 0;
  for (uint32_t f = 0; f < frames_of(partition); ++f) {
    PinWord word = words_[first + f].load_acquire();
    if (word.state() == FrameState::kFree) {
      SPW_CHECK(word.bits() == 0);
      continue;
    }
    ++held;
    SPW_CHECK(partition_of(word.block()) == partition);
    SPW_CHECK(find(word.block()) == FrameId(first + f));
  }
  uint32_t used = 0;
  const Atomic<uint32_t>* slots = slots_of(partition);
  for (uint32_t i = 0; i < slots_per_partition_; ++i) used += slots[i].load_relaxed() != 0;
  SPW_CHECK(used == held);
}

}  // namespace spw::cache
