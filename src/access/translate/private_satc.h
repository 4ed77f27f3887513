// The private SATC: a thread's set-associative cache of translations, below the direct SATC and above the
// shared cache (TriCache, section 3.3).
//
// An entry says: this thread holds one reference on `frame`, which holds `block` at `data`; and, when
// `writable`, the frame was marked dirty after that reference was taken, so this thread may store to it.
// Inclusion: a granule in the direct SATC belongs to a block that has an entry here.
// Placement: a block's group follows from its partition, so the entries of one partition never exceed sets * ways,
// whatever the program touches (see pin_budget.h); its set within the group from its number in the partition, modulo
// the sets, whose number is odd unless it is very small: a contiguous range fills all sets evenly, neighbours lie side
// by side in memory, and a stride that is a power of two uses all sets. Replacement: second chance within a set. Direct
// hits do not pass here; so the caller's `spare` callback answers whether the direct SATC still held the block,
// withdraws it there, and the entry gets another round.
//
// Threads: one. Lifetime: empty before destruction (clear()). Limits: SatcShape.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "access/translate/pin_budget.h"
#include "base/check.h"
#include "base/ids.h"
#include "cache/partition_map.h"

namespace spw::access {

struct SatcEntry {
  std::byte* data = nullptr;
  FrameId frame = kNoFrame;
  bool writable = false;
  bool referenced = false;
};

class PrivateSatc {
 public:
  // `memory`: bytes_for(shape) zeroed bytes, 64-byte aligned, which outlive this.
  PrivateSatc(const SatcShape& shape, const cache::PartitionMap& partitions, void* memory);
  static size_t bytes_for(const SatcShape& shape);

  // The entry of `block`, marked referenced, or nullptr.
  SatcEntry* find(BlockId block) {
    Set set = set_of(block);
    __builtin_prefetch(set.entries);
    __builtin_prefetch(set.entries + shape_.ways / 2);
    for (uint32_t way = 0; way < shape_.ways; ++way) {
      if (set.keys[way] == block.value + 1) {
        set.entries[way].referenced = true;
        return &set.entries[way];
      }
    }
    return nullptr;
  }

  // Makes room for `block`, which is not here: returns an empty entry that is now the block's. For each entry that had
  // to go, kEvictedAtOnce at most, `evicted` is called with its block and contents first; so a set comes down to
  // `ways_limit` entries by and by. `spare(block)`: see the header.
  template <class Spare, class Evicted>
  SatcEntry* insert(BlockId block, uint32_t ways_limit, Spare spare, Evicted evicted) {
    Set set = set_of(block);
    const uint32_t used = used_ways(set);
    const uint32_t over = used < ways_limit ? 0 : std::min(used - ways_limit + 1, kEvictedAtOnce);
    for (uint32_t i = 0; i < over; ++i) {
      uint32_t victim = choose_victim(set, spare);
      evicted(BlockId(set.keys[victim] - 1), set.entries[victim]);
      set.keys[victim] = 0;
    }
    uint32_t way = 0;
    while (set.keys[way] != 0) ++way;
    set.keys[way] = block.value + 1;
    set.entries[way] = SatcEntry{};
    return &set.entries[way];
  }

  // Whether insert() of `block` would have to make room.
  bool is_full_for(BlockId block) const { return used_ways(set_of(block)) == shape_.ways; }

  // Brings what find() and insert() of `block` touch towards the processor.
  void prefetch(BlockId block) const {
    Set set = set_of(block);
    __builtin_prefetch(set.keys, 1);
    __builtin_prefetch(set.entries, 1);
    __builtin_prefetch(set.entries + shape_.ways / 2, 1);
  }

  // Removes the entries of [first, first + count), `evicted(block, entry)` called for each: by looking each block up,
  // or by a walk over the table when the range is longer than that.
  template <class Evicted>
  void remove_range(BlockId first, uint64_t count, Evicted evicted) {
    if (count > shape_.entries()) {
      for (size_t i = 0; i < shape_.entries(); ++i)
        if (keys_[i] != 0 && keys_[i] - 1 - first.value < count) remove_at(i, evicted);
      return;
    }
    for (uint64_t n = 0; n < count; ++n)
      if (SatcEntry* entry = find(first + n)) remove_at(static_cast<size_t>(entry - entries_), evicted);
  }

  // Calls `evicted(block, entry)` for every entry and empties the table.
  template <class Evicted>
  void clear(Evicted evicted) {
    for (size_t i = 0; i < shape_.entries(); ++i)
      if (keys_[i] != 0) remove_at(i, evicted);
  }

 private:
  struct Set {
    uint64_t* keys;  // block + 1, or 0
    SatcEntry* entries;
    uint8_t* hand;
  };

  Set set_of(BlockId block) const {
    uint32_t group = partitions_.of(block).value & (shape_.groups - 1);
    size_t index = size_t{group} * shape_.sets + partitions_.index_within(block) % shape_.sets;
    return {keys_ + index * shape_.ways, entries_ + index * shape_.ways, hands_ + index};
  }

  uint32_t used_ways(Set set) const {
    uint32_t used = 0;
    for (uint32_t way = 0; way < shape_.ways; ++way) used += set.keys[way] != 0;
    return used;
  }

  template <class Evicted>
  void remove_at(size_t i, Evicted evicted) {
    evicted(BlockId(keys_[i] - 1), entries_[i]);
    keys_[i] = 0;
  }

  // The next occupied way that nobody used since the hand last passed, or any after two rounds.
  template <class Spare>
  uint32_t choose_victim(Set set, Spare spare) {
    for (uint32_t step = 0;; ++step) {
      uint32_t way = *set.hand;
      *set.hand = static_cast<uint8_t>(way + 1 == shape_.ways ? 0 : way + 1);
      if (set.keys[way] == 0) continue;
      SatcEntry& entry = set.entries[way];
      bool in_direct = spare(BlockId(set.keys[way] - 1));
      if ((!entry.referenced && !in_direct) || step >= 2 * shape_.ways) return way;
      entry.referenced = false;
    }
  }

  SatcShape shape_;
  cache::PartitionMap partitions_;
  uint64_t* keys_;
  SatcEntry* entries_;
  uint8_t* hands_;
};

}  // namespace spw::access
