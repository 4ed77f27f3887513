// Which blocks of one file are dirty, in the order of the file: what
// a sync and the flusher go by, so that they look at nothing else.
//
// They are in a page index (files/page_index), and in no other one: a block's frame is
// found by the cache's table in one probe, and what an ordered index adds is ranges.
// An entry comes when a block is made dirty, and goes when it has been written.
//
// Invariants
//   of a write that has returned, the block is in the index and dirty there, or is clean in the cache
//   count() = dirty entries;  a block that is clean in the cache leaves soon: when its write has finished
// Order: a writer makes the block dirty in the cache, holds it, and calls note(), which sets the tag unless it is set.
//   The owner who has written the block calls cleaned(): it clears the tag, and then looks whether the block is dirty
//   in the cache. Either sees what the other did: a store-load race on both sides, with full fences.
// Where there is no memory for it the index has holes from then on
// (is_complete()), and everything has to be looked through.
// Threads: any; forget_from() while nobody writes to the file. Lifetime: of the file.
#pragma once

#include <cstdint>
#include <span>

#include "base/atomic.h"
#include "cache/cache.h"
#include "files/page_index/page_index.h"
#include "region/region_map.h"

namespace spw::files {

class DirtyBlocks final : public region::DirtyWatcher {
 public:
  // `total`: of all files.
  DirtyBlocks(PageNodes& nodes, const cache::SharedCache& cache, unsigned block_shift,
              Atomic<uint64_t>& total)
      : index_(nodes), cache_(cache), block_shift_(block_shift), total_(total) {}
  ~DirtyBlocks() override { total_.fetch_sub_relaxed(count()); }

  // The caller holds the file's block with this number, for writing; or as many from this one on.
  void note(uint64_t number) { note_run(number, 1); }
  void note_run(uint64_t number, uint64_t count);
  // note() comes soon, and maybe of the kNear blocks that this is one of, whose places are near each other.
  static constexpr uint64_t kNear = 8;
  void prefetch(uint64_t number) const { index_.prefetch(number); }
  void dirtied(uint64_t offset_bytes, uint64_t count) override;
  void cleaned(uint64_t offset_bytes, BlockId first, std::span<const FrameId> frames) override;
  // The file's blocks from this one on are no longer.
  void forget_from(uint64_t number);

  bool is_complete() const { return is_complete_.load_acquire(); }
  uint64_t count() const { return count_.load_acquire(); }
  // How often blocks were written, ever. One of a block that count() no longer has is in it.
  uint64_t writebacks() const { return writebacks_.load_acquire(); }
  // When the first of those that are dirty became so, more or less; 0: none is.
  uint64_t since_ns() const { return since_ns_.load_relaxed(); }
  // Everything that is dirty now is about to be written; and that is over. What is dirty then counts as dirty since
  // now: it was made so meanwhile, or could not be written.
  void begin_flush() { since_ns_.store_seq_cst(0); }
  void end_flush();
  // All blocks of the file are clean, and nobody writes: the index is complete again.
  void start_over();
  // The first dirty blocks that follow one another from `from` on, but not behind `last`; count 0: there are none.
  PageIndex::Run next(uint64_t from, uint64_t last, uint64_t blocks_max) {
    return index_.next_dirty_run(from, last, blocks_max);
  }

 private:
  void add(uint64_t blocks) {
    count_.fetch_add_relaxed(blocks);
    total_.fetch_add_relaxed(blocks);
  }
  void take(uint64_t blocks) {
    count_.fetch_sub_acq_rel(blocks);
    total_.fetch_sub_relaxed(blocks);
  }

  PageIndex index_;
  const cache::SharedCache& cache_;
  const unsigned block_shift_;
  Atomic<bool> is_complete_{true};
  Atomic<uint64_t> since_ns_{0};
  Atomic<uint64_t>& total_;
  Atomic<uint64_t> count_{0};
  Atomic<uint64_t> writebacks_{0};
};

}  // namespace spw::files
