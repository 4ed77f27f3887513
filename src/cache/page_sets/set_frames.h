// A partition organised as page sets: SA-cache (Zheng, Burns, Szalay: "A parallel page cache:
// IOPS and caching for multicore systems", HotStorage 2012). A miss takes a frame of its block's
// home set, under that set's lock, and evicts the block that its rule (set_frequencies.h) names.
// There is no list and no line that two sets share: misses of different sets do not meet.
//
// Beyond the paper:
//   - a hit takes no lock (page_set_table.h)
//   - a block whose home is full of pinned blocks strays into a set behind it. SATCs pin many blocks for long, and with
//     eight frames a set some sets would have all of theirs pinned though most of the memory is not.
//   - dirty blocks are written before they are needed: a set that runs out of clean ones is scheduled, and the
//     partition's owner writes its least used dirty blocks together with their dirty neighbours in other sets.
//
// Locks: a block comes, and leaves, under the lock of its home; if it is in another set, under that one's as well. Its
//   memory is released before they are let go, so whoever finds that a block is not there, under its home's lock, may
//   bring it in again at once. A client that holds a lock only tries to take others, and the owner's waits for clients
//   only; so none waits for another in a circle.
// Invariants: a word becomes `filling` only under its set's lock, and under the lock of its block's home
//             a frame is free <=> its word is; but for those the owner takes out, which are leaving() until release_dropped()
// Threads: take_alone() and wants_owner() by any; the rest is the owner's.
#pragma once

#include <vector>

#include "cache/partition/organisation.h"

namespace spw::cache {

class SetFrames final : public Organisation {
 public:
  SetFrames(PartitionContext& context, PartitionId id, Writeback& writeback);

  Taken take(BlockId block, uint64_t refs, bool ahead) override;
  bool clients_take() const override { return true; }
  Taken take_alone(BlockId block) override;
  Taken take_from_afar(BlockId block, uint64_t refs) override;
  bool start_writes_for(BlockId block) override;
  void evict(EvictionBatch& batch) override;
  bool drop(FrameId frame, BlockId block, Drop which, PinWord* was) override;
  bool drop_failed(FrameId frame) override;
  void release_dropped() override;
  void await_eviction(BlockId block) override;
  void await_evictions_from(FrameId frame) override;
  void catch_up() override;
  bool wants_owner() const override { return scheduled_count_.load_relaxed() >= scheduled_many_; }
  uint32_t frames_ever_used() const override { return frame_count_; }
  uint32_t evict_batch() const override { return evict_batch_; }
  uint64_t metadata_bytes() const override {
    return sizeof(*this) + (scheduled_.capacity() + taken_over_.capacity()) * sizeof(uint32_t);
  }
  void check_invariants() const override;

 private:
  static constexpr unsigned kNoSlot = kBlocksASet;
  // Sets behind its home that a block may stray to before anybody waits.
  static constexpr uint32_t kNear = 8;
  // A set with fewer clean blocks that could go is scheduled, and then gets so many.
  static constexpr unsigned kCleanMin = 2;
  static constexpr unsigned kCleanWanted = 4;
  static constexpr uint32_t kScheduledMany = 8;
  static constexpr uint32_t kScheduledMax = 1024;
  // Blocks that the owner takes out at once, with their sets locked.
  static constexpr size_t kDroppedMax = 128;

  // Neither free nor anybody's: no block has this number.
  static PinWord leaving() { return PinWord::filling(BlockId((uint64_t{1} << kBlockIdBits) - 1), 0, false); }

  uint32_t home_of(BlockId block) const {
    return sets_.home_of(context_.directory.map().index_within(block));
  }
  // How many of a set's frames may be in use.
  unsigned ways(uint32_t set) const {
    const uint64_t most = limit();
    return static_cast<unsigned>((set + 1) * most / sets_.count() - set * most / sets_.count());
  }
  unsigned used_in(uint32_t set) const;
  bool is_being_written(uint32_t set) const;
  Taken take_within(BlockId block, uint64_t refs, bool ahead, uint32_t nearest, uint32_t farthest);
  void occupy(uint32_t home, uint32_t distance, unsigned slot, PinWord filling);
  unsigned slot_in(uint32_t set, uint32_t home);
  unsigned evict_alone(uint32_t set, uint32_t home);
  template <class LockHome>
  unsigned evict_in(uint32_t set, PinWord* was, LockHome lock_home);
  bool evict_with_others(uint32_t set);
  void hold(uint32_t set);
  bool is_held(uint32_t set) const;
  void pass(uint32_t set);
  void learn_uses(uint32_t set);
  void forget(uint32_t set, unsigned slot, PinWord was);
  void leave(FrameId frame, PinWord was);
  void schedule_if_dirty(uint32_t set);
  unsigned write_dirty_in(uint32_t set, unsigned clean_wanted);

  const PageSets& sets_;
  const SetRule rule_;
  const uint32_t evict_batch_;
  const uint32_t scheduled_many_;
  uint32_t hand_ = 0;  // the next set that evict() comes to
  std::vector<Resident> dropped_;
  std::vector<uint32_t> held_;  // whose locks the owner has, for dropped_
  std::vector<uint32_t> without_clean_;

  SetLock schedule_lock_;
  std::vector<uint32_t> scheduled_;
  std::vector<uint32_t> taken_over_;  // the owner's; empty between requests
  Atomic<uint32_t> scheduled_count_;
};

}  // namespace spw::cache
