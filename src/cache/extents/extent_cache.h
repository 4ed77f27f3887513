// A block cache with extents: what is asked of it is asked of the extents first (extents.h), and then of the block
// cache behind it.
//
// Pins: of a block in an extent they are pins of that, which keep it at its own address; Pin::is_extent says so. Their
//   frames' numbers are those behind the block cache's frames, one a slot. Nothing else is to be done about such a
//   block: its pages may be stored to, and no store to them need be noticed.
// Ranges: what is said of a range of blocks (discard, flush, adopt) first settles the extents in it, which are written,
//   or dropped where the range covers them whole, and go; so it finds the block cache as if there had been none.
// Threads: as SharedCache. Lifetime: the memory outlives it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cache/cache.h"
#include "cache/client.h"
#include "cache/extents/extent_mover.h"
#include "cache/extents/extents.h"
#include "platform/thread.h"

namespace spw::cache {

class ExtentCache final : public SharedCache {
 public:
  // Whether threads can be made to agree here (platform/process_barrier.h), and blocks are not too large.
  static bool is_possible(unsigned block_shift);
  // Where it is.
  static Result<std::unique_ptr<SharedCache>> around(std::unique_ptr<SharedCache> blocks, BlockSource& source,
                                                     std::unique_ptr<ExtentMemory> memory,
                                                     const ExtentMover::Options& options);
  ~ExtentCache() override;

  Result<Client*> open_client(Uses uses) override;
  void close_client(Client* client) override { blocks_->close_client(client); }
  Status pin(Client& client, BlockId block, Access access, Pin* out) override;
  Status pin_quietly(Client& client, BlockId block, Access access, Pin* out) override;
  Status pin_loose(Client& client, BlockId block, Access access, Pin* out) override;
  Status pin_expecting(Client& client, BlockId block, Pin* out) override;
  Fills* open_fills() override { return blocks_->open_fills(); }
  Begun begin_pin(Client& client, Fills& fills, BlockId block, Access access, uint64_t tag, Pin* out,
                  Status* status) override;
  Begun try_pin(Client& client, BlockId block, Access access, Pin* out, Status* status) override;
  size_t room_for_fills(const Fills& fills) const override { return blocks_->room_for_fills(fills); }
  void start_fills(Fills& fills) override { blocks_->start_fills(fills); }
  size_t end_pins(Client& client, Fills& fills, std::span<EndedPin> out) override {
    return blocks_->end_pins(client, fills, out);
  }
  uint64_t sleep_of_fills(Fills& fills, std::vector<int>* fds) override {
    return blocks_->sleep_of_fills(fills, fds);
  }
  bool place(FrameId frame) override { return is_extent(frame) || blocks_->place(frame); }
  uint64_t references(FrameId frame) const override;
  void pin_is_near(BlockId block) const override { blocks_->pin_is_near(block); }
  void pin_is_next(BlockId block) const override { blocks_->pin_is_next(block); }
  void unpin_is_near(FrameId frame) const override {
    if (!is_extent(frame)) blocks_->unpin_is_near(frame);
  }
  bool is_resident(BlockId block) const override;
  bool pin_present(Client& client, BlockId block, Access access, Pin* out) override;
  void bring_in_zeros(Client& client, BlockId block) override;
  void dirty_resident(BlockId first, uint64_t count) override { blocks_->dirty_resident(first, count); }
  void mark_dirty(Client& client, FrameId frame) override {
    if (!is_extent(frame)) blocks_->mark_dirty(client, frame);
  }
  void unpin(Client& client, FrameId frame) override;
  void miss_run(Client& client, BlockId first, uint32_t blocks) override {
    if (!may_be_extent(first)) blocks_->miss_run(client, first, blocks);
  }
  uint32_t pin_run(Client& client, BlockId first, uint32_t count, Access access, Pin* out) override {
    return may_be_extent(first) ? 0 : blocks_->pin_run(client, first, count, access, out);
  }
  void prefetch(Client& client, BlockId first, uint64_t count) override;
  void prefetch_at_once(Client& client, BlockId first, uint64_t count) override;
  void adopt(Client& client, BlockId first, uint64_t count) override;
  void discard(Client& client, BlockId first, uint64_t count) override;
  void keep_small(Client& client, BlockId first, uint64_t count) override;
  void begin_fork(Client& client) override;
  void end_fork() override { extents_->end_fork(); }
  void set_frame_limit(uint32_t frames) override;
  void note_passed(uint64_t blocks) override { blocks_->note_passed(blocks); }
  uint32_t frame_limit() const override { return limit_.load_relaxed(); }
  bool make_room(Client& client, unsigned low_percent, unsigned high_percent) override {
    return blocks_->make_room(client, low_percent, high_percent);
  }
  Status evict_to_limit(Client& client) override;
  Status flush(Client& client, BlockId first, uint64_t count) override;
  void begin_flush(Client& client, const std::function<BlockRun()>& next, Flushing* flushing) override;
  Status end_flush(Client& client, Flushing* flushing) override {
    return blocks_->end_flush(client, flushing);
  }
  bool try_end_flush(Client& client, Flushing* flushing, Status* status) override {
    return blocks_->try_end_flush(client, flushing, status);
  }
  void await_writes(Client& client, BlockId first, uint64_t count) override;
  bool holds(Resident resident) const override { return blocks_->holds(resident); }
  void for_each_unwritten(const std::function<void(Resident)>& visit) const override {
    blocks_->for_each_unwritten(visit);
  }
  bool is_dirty(BlockId block) const override { return blocks_->is_dirty(block); }
  bool holds_dirty(Resident resident) const override { return blocks_->holds_dirty(resident); }
  Status sync(Client& client, BlockId first, uint64_t count) override;
  PartitionMap partition_map() const override { return blocks_->partition_map(); }
  uint32_t frames_per_partition() const override { return blocks_->frames_per_partition(); }
  void close_store(Client& client, store::Store& store) override {
    mover_.close_store(store);
    blocks_->close_store(client, store);
  }
  const platform::File* frames_file() const override { return blocks_->frames_file(); }
  uint64_t memory_file_bytes() const override { return blocks_->memory_file_bytes(); }
  uint32_t frame_count() const override { return blocks_->frame_count(); }
  uint32_t free_frames() const override { return blocks_->free_frames(); }
  uint32_t occupied_frames() const override;
  bool has_free_frames(PartitionId partition) const override { return blocks_->has_free_frames(partition); }
  uint32_t peak_frames() const override;
  uint64_t metadata_bytes() const override;
  void check_invariants() override { blocks_->check_invariants(); }

 private:
  ExtentCache(std::unique_ptr<SharedCache> blocks, BlockSource& source, std::unique_ptr<ExtentMemory> memory,
              std::unique_ptr<Extents> extents, const ExtentMover::Options& options);

  bool is_extent(FrameId frame) const { return frame.value >= first_frame_ && frame != kNoFrame; }
  FrameId frame_of(uint32_t slot) const { return FrameId(first_frame_ + slot); }
  bool may_be_extent(BlockId block) const { return extents_->of(block) < extents_->count(); }
  template <class OfBlocks>
  auto pin_by(Client& client, BlockId block, Pin* out, OfBlocks of_blocks);
  template <class OfBlocks>
  Begun begin_by(Client& client, BlockId block, OfBlocks of_blocks);
  bool pin_extent(uint64_t extent, BlockId block, Pin* out);
  bool enter(Client& client, uint64_t extent);
  void go_on(Client& client);
  std::pair<uint64_t, uint64_t> extents_around(BlockId first, uint64_t count) const;
  void zero(uint64_t extent, BlockId first, BlockId end);
  void settle(uint64_t first, uint64_t last, BlockId begin, uint64_t count, Settle how);
  template <class OfBlocks>
  auto on_range(Client& client, BlockId first, uint64_t count, Settle how, OfBlocks of_blocks);
  void quiesce(uint64_t extent);

  std::unique_ptr<SharedCache> blocks_;
  std::unique_ptr<ExtentMemory> memory_;
  std::unique_ptr<Extents> extents_;
  const uint32_t first_frame_;
  Atomic<uint32_t> limit_;
  const bool after_misses_;
  std::mutex clients_mutex_;
  std::vector<Client*> clients_;  // that there ever were: their memory stays
  ExtentMover mover_;
  platform::Thread thread_;  // last: it uses all of the above
};

}  // namespace spw::cache
