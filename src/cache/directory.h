// Which frame holds a block, and each frame's pin word: what clients
// read without a lock, whichever way partitions are organised.
//
// Threads: any. Ordering: as of the two tables behind it (block_table/block_table.h,
// page_sets/page_set_table.h): a lookup may miss what is there, and never gives what
// is not, since every pin is a compare-and-swap on a word that names its block.
#pragma once

#include <optional>

#include "cache/block_table/block_table.h"
#include "cache/page_sets/page_set_table.h"

namespace spw::cache {

class Directory {
 public:
  explicit Directory(BlockTable table)
      : ranked_(std::move(table)),
        map_(ranked_->map()),
        shares_(ranked_->shares()),
        words_(ranked_->words_memory()),
        words_shift_(kWordsShift) {}
  explicit Directory(PageSetTable table)
      : sets_(std::move(table)),
        map_(sets_->map()),
        shares_(sets_->shares()),
        words_(sets_->words_memory()),
        words_shift_(kPageSetShift) {}
  Directory(Directory&&) = default;

  // One of the two is there.
  BlockTable* ranked() { return ranked_ ? &*ranked_ : nullptr; }
  PageSetTable* sets() { return sets_ ? &*sets_ : nullptr; }

  const PartitionMap& map() const { return map_; }
  const FrameShares& shares() const { return shares_; }
  PartitionId partition_of(BlockId block) const { return map_.of(block); }

  // The words of eight frames lie in a row, so far from the next eight as the organisation has them.
  AtomicPinWord& word(FrameId frame) const {
    const uint64_t row = static_cast<uint64_t>(frame.value) / kRow;
    return reinterpret_cast<AtomicPinWord*>(words_ + (row << words_shift_))[frame.value % kRow];
  }

  bool try_pin(BlockId block, bool for_write, FrameId* frame, PinWord* before) const {
    if (sets_) [[unlikely]]
      return sets_->try_pin(block, for_write, frame, before);
    return ranked_->try_pin(block, for_write, frame, before);
  }
  // The frame that seems to hold `block`, or kNoFrame.
  FrameId find(BlockId block) const { return sets_ ? sets_->find(block) : ranked_->find(block); }

  void prefetch_slot(BlockId block) const {
    sets_ ? sets_->prefetch_set(block) : ranked_->prefetch_slot(block);
  }
  void prefetch_word(BlockId block) const {
    if (ranked_) ranked_->prefetch_word(block);
  }
  void prefetch_word(FrameId frame) const { __builtin_prefetch(&word(frame), 1); }

  uint64_t metadata_bytes() const { return sets_ ? sets_->metadata_bytes() : ranked_->metadata_bytes(); }
  void check_invariants() const {
    if (ranked_) ranked_->check_invariants();
  }

 private:
  static constexpr uint32_t kRow = 8;
  static constexpr unsigned kWordsShift = 6;
  static_assert(kRow == kBlocksASet && kRow * sizeof(AtomicPinWord) == 1 << kWordsShift);

  std::optional<BlockTable> ranked_;
  std::optional<PageSetTable> sets_;
  const PartitionMap map_;
  const FrameShares shares_;
  std::byte* const words_;
  const unsigned words_shift_;
};

}  // namespace spw::cache
