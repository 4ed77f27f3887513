// Which block of a page set leaves memory: SA-cache's rule (Zheng, Burns, Szalay: "A
// parallel page cache: IOPS and caching for multicore systems", HotStorage 2012, section
// 3). No lists: a byte for each of a set's blocks, and for some that were in it last.
//
//   kLru     the byte is the block's place in the order of uses
//   kLfu     the byte counts uses; when one would overflow all are halved. The least used block leaves.
//   kNrLfu   as kLfu, and the counts of blocks that left are kept: one that comes back goes on counting where it was
//
// A new block counts one use. Of equally used ones the first after
// the last victim leaves, so that a set of new blocks is a queue.
// Invariants: kLru: the bytes of the set's blocks are the numbers below kBlocksASet, each once
//             the history holds a fingerprint at most once; [next_, next_ + 1, ...) are its entries, oldest first
// Threads: the set's lock protects it. note_use() of kLfu and kNrLfu may be called without it: a use that is lost to
// another one at the same moment costs accuracy, no more.
// Memory: sizeof below. Every operation looks at each entry once at most.
#pragma once

#include <array>
#include <cstdint>

#include "base/atomic.h"
#include "base/ids.h"

namespace spw::cache {

inline constexpr unsigned kBlocksASet = 8;  // the paper's; more make victims better and lookups slower
inline constexpr unsigned kCacheLineBytes = 128;

enum class SetRule : uint8_t { kLru, kLfu, kNrLfu };

class SetFrequencies {
 public:
  // Blocks that are remembered: what fits beside a set's other metadata into the paper's four lines.
  static constexpr unsigned kHistory = 60;

  SetFrequencies();

  // The block in `slot` was used.
  void note_use(SetRule rule, unsigned slot);
  // A block comes into an empty slot.
  void insert(SetRule rule, unsigned slot, BlockId block);
  // The block in `slot` leaves.
  void remove(SetRule rule, unsigned slot, BlockId block);
  // Of the slots whose bit is set in `eligible`, which is not 0, the one to evict.
  unsigned victim(SetRule rule, uint8_t eligible) const;

  uint8_t frequency(unsigned slot) const { return frequencies_[slot].load_relaxed(); }
  void check_invariants(SetRule rule) const;

 private:
  static constexpr uint8_t kMax = UINT8_MAX;

  // Its own for each of 2^32 blocks (the product's lower half: its upper half may choose the set). 0 stands for none.
  static uint32_t fingerprint(BlockId block) {
    const auto hash = static_cast<uint32_t>(block.value * 0x9E3779B9u);
    return hash == 0 ? 1 : hash;
  }
  void halve();
  // The count under which the block is remembered, which is forgotten then; 0 if it is not.
  uint8_t take_from_history(uint32_t block);

  std::array<Atomic<uint8_t>, kBlocksASet> frequencies_;
  uint8_t next_victim_ = 0;
  uint8_t next_ = 0;
  std::array<uint8_t, kHistory> history_counts_ = {};
  std::array<uint32_t, kHistory> history_ = {};
};

}  // namespace spw::cache
