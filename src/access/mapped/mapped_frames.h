// Frames of the mapped engine. A block that is placed lies at its own address: a fill is copied there from staging,
// which also puts the page in place; a victim's pages are given back to the kernel. Loose blocks and those without an
// address are in the pool (block_pool.h): they are read into where they stay, and nobody reaches them but by pins.
// What is said below is of placed blocks.
//
// Invariants
//   a block's pages are there <=> its pin word is resident (up to install and release, which the owner or filler makes)
//   pin word clean, not being written => its pages are write-protected (placed_pages.h), so that no store goes unnoticed
//   (dirty and write-protected is possible, after a store raced with a writeback: it costs a fault)
//   (a loose block has no page at its own address, or an alias of the pool's: loose_aliases.h; a lifted one has none)
// Why no write is lost: a block becomes clean (CAS, refs 0) before its pages are protected, and
//   they are protected before they are read for the writeback. A store before the protection is
//   in what is written; one after it faults, and whoever serves the fault makes the block dirty
//   again before the store goes on. (Of one that is lifted to be written: cache/writeback/lifting.cc.)
//   Eviction takes clean blocks alone; a store that comes between the eviction's CAS and the release
//   faults too, and waits until the block has been read anew.
// Threads, ordering: see FrameSource; the kernel orders page-table changes. Around a fork no block leaves its place or
//   comes to it (but one of a single page, which comes as a whole): lock_for_fork().
// Limits: runs_max staging buffers for runs. Errors: a page that cannot be installed or protected ends the program
//   through `fatal`: without memory there is nothing to go on with.
#pragma once

#include <mutex>
#include <shared_mutex>

#include "access/mapped/block_pool.h"
#include "access/mapped/hint_table.h"
#include "access/mapped/placed_pages.h"
#include "access/mapped/store_predictor.h"
#include "cache/frame_pool/frame_source.h"
#include "cache/frame_pool/staging.h"
#include "cache/partition_map.h"
#include "platform/page_lifter.h"

namespace spw::access {

struct MappedFramesOptions {
  unsigned block_shift = 12;
  uint64_t in_place_end = 0;  // blocks from here on are pooled
  uint32_t frame_count = 0;
  uint32_t runs_max = 16;
  void (*fatal)(const Status&) = nullptr;
};

class MappedFrames final : public cache::FrameSource {
 public:
  // `base`: the address of block 0, whose pages are `pages`. Both outlive this, and so do the hints.
  static Result<std::unique_ptr<MappedFrames>> create(std::byte* base, PlacedPages& pages, HintTable& hints,
                                                      const MappedFramesOptions& options);

  Placement placement() const override {
    return {base_, options_.in_place_end, pool_->base(), pool_->places()};
  }
  // A request of one piece, from a huge page, and a copy take less than one of many small pieces.
  StagingUse staging_use(BlockId block, uint64_t count) const override {
    if (has_address(block)) return StagingUse::kNeeded;
    return count > 1 ? StagingUse::kWanted : StagingUse::kNone;
  }
  std::byte* take_staging(cache::FrameSource::Staging kind) override { return staging_.take(kind); }
  void give_back(cache::FrameSource::Staging kind, std::byte* buffer) override {
    staging_.give_back(kind, buffer);
  }
  bool is_written_from_staging(BlockId block) const override {
    return has_forked_.load_relaxed() && has_address(block);
  }
  std::byte* fill_address(cache::Resident resident, std::byte* staging, size_t index) override {
    if (!staging) return pool_->take(resident.frame).data;
    return staging + (index << options_.block_shift);
  }
  void install(std::span<const cache::Resident> run, cache::Contents contents, const std::byte* staging,
               bool writable) override;
  bool is_readable(BlockId block) const override {
    return !has_address(block) || pages_.is_readable(address_of(block), block_bytes());
  }
  void copy_out(cache::Resident resident, std::byte* to) override;
  void let_read(std::span<const cache::Resident> run) override;
  void begin_writeback(std::span<const cache::Resident> run) override;
  void end_writeback(cache::Resident resident) override;
  bool lifts(BlockId block) const override;
  bool lift(std::span<const cache::Resident> blocks) override;
  void put_back(cache::Resident resident) override;
  void forget_lifted(std::byte* memory) override { pool_->give_back(memory); }
  void place(cache::Resident resident, bool writable) override;
  void release(std::span<const cache::Resident> victims) override;
  size_t release_batch_max() const override;
  void set_limit(uint32_t frames) override { pool_->set_limit(frames); }
  void allow_stores(std::span<const cache::Resident> run) override;
  void watch_for_use(cache::Resident resident) override;
  bool comes_stored_to(BlockId first) override { return along_.predicts_store(first); }
  void watch_for_store(cache::Resident resident) override;
  bool notes_uses() const override { return true; }

  void lock_for_fork();
  void unlock_after_fork();

  const BlockPool& pool() const { return *pool_; }
  uint64_t memory_file_bytes() const override { return platform::allocated_bytes(pool_->file()); }
  std::byte* address_of(BlockId block) const { return base_ + (block.value << options_.block_shift); }

 private:
  // Held by who moves blocks. Nobody sleeps with it but in the kernel's memory calls.
  class Moving;
  MappedFrames(std::byte* base, PlacedPages& pages, HintTable& hints, const MappedFramesOptions& options,
               platform::Mapping zeros, std::unique_ptr<BlockPool> pool);

  uint64_t block_bytes() const { return uint64_t{1} << options_.block_shift; }
  // A run is of one region, which is so as a whole.
  bool has_address(BlockId block) const { return block.value < options_.in_place_end; }
  // Calls visit(run of placed blocks) for the longest pieces of `run`.
  template <class Visit>
  void for_each_placed(std::span<const cache::Resident> run, Visit visit) const;
  void copy_to_address(cache::Resident resident, bool writable);
  void install_in_pool(std::span<const cache::Resident> run, cache::Contents contents,
                       const std::byte* staging);
  void must(const Status& status) const {
    if (!status) options_.fatal(status);
  }

  std::byte* const base_;
  PlacedPages& pages_;
  HintTable& hints_;
  StorePredictor along_;  // of blocks that come along with one that is stored to
  const MappedFramesOptions options_;
  cache::StagingBuffers staging_;
  platform::Mapping zeros_;  // a run's length
  std::unique_ptr<BlockPool> pool_;
  std::shared_mutex moving_;
  // This process, or one that it comes from. Direct I/O from memory that is copy-on-write copies it (the kernel
  // "unshares" what it pins): were blocks written from their own memory, each side of a fork would soon have a copy of
  // all of it.
  static inline constinit Atomic<bool> has_forked_{false};
  Atomic<bool> forks_{false};  // or is about to: nobody else begins to move blocks
  std::mutex forking_;
};

}  // namespace spw::access
