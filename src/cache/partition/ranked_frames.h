// A partition whose blocks an eviction policy ranks.
//
// Where frames come from, in this order: dropped frames, frames never used, the reserve. The *reserve* is a
// queue of clean eviction candidates, still cached and still hit by clients; it is refilled from the policy
// before it is empty. A candidate that is dirty is written behind first, together with its dirty neighbours
// (writeback/writeback.h), and enters the reserve when the write is done. So a miss nearly always finds a clean
// victim at once. A neighbour of which nobody made use lately goes there with it: if it stayed it would be
// written once more, by itself, when it is dirty again, and until then part the dirty blocks on its two sides. (At its
// own address one that was used since it was last looked at is left alone: most likely it is still being stored to.)
// Of a buffered file the whole group is *swept*: all that is dirty in it is written and goes, used or not,
// where the policy lets go of what is not its next candidate. A sweep that runs out of operations, or of
// starts, goes on with the next refill. A disk takes writes that lie near each other faster than as many all
// over the file, they are the fewer the longer the group was left alone, and what a write overwrites whole need
// not be read again. (Where few blocks get most of the writes some 4 % more are written so, in the same time.)
//
//     policy --clean--> reserve --not used meanwhile--> evicted
//            --dirty--> being written --still clean, unpinned--> reserve          (both: `on offer` to the policy)
//
// Invariants: free + never used + in the table = frames of the partition
//             in_writing_ = frames on offer and being written
//             reserve + in_writing_ <= reserve_high after a refill, but for what went along with the last candidate
//             ahead_unused >= frames with the ahead bit (a client clears the bit first, then counts)
// Threads: the owner's.
#pragma once

#include <memory>
#include <vector>

#include "cache/eviction/policy.h"
#include "cache/partition/organisation.h"
#include "cache/partition/reserve.h"
#include "cache/writeback/writeback.h"

namespace spw::cache {

// A reserve holds at most this share of a partition's frames.
inline constexpr uint32_t kReserveShare = 8;
// Measured with random updates of four times the cap, beside 32 to 2048.
inline constexpr uint32_t kLiftedReserveMax = 128;
// Room for candidates that left the reserve by another way and are still queued.
inline constexpr uint32_t kReserveSlack = 4;
// A group that is swept is no larger. Measured with 256 KiB.
inline constexpr uint64_t kSweptBytesMax = 1 << 20;

class RankedFrames final : public Organisation, private FrameProbe {
 public:
  RankedFrames(PartitionContext& context, PartitionId id, Writeback& writeback,
               std::unique_ptr<Policy> policy);

  void prefetch_block(BlockId block) const override { policy_->prefetch_block(block); }
  Taken take(BlockId block, uint64_t refs, bool ahead) override;
  uint32_t take_run(BlockId first, uint32_t count, FrameId* frames) override;
  void make_room(uint32_t frames) override;
  bool came_back(FrameId frame) const override { return policy_->came_back(local(frame)); }
  bool start_writes_for(BlockId) override { return true; }  // the reserve's are under way
  void evict(EvictionBatch& batch) override;
  bool drop(FrameId frame, BlockId block, Drop which, PinWord* was) override;
  bool drop_failed(FrameId frame) override;
  void release_dropped() override;
  bool is_written_along(FrameId frame, PinWord seen) const override;
  void note_writing(FrameId frame, const EvictionBatch* batch) override;
  void note_settled(FrameId frame) override;
  void catch_up() override;
  uint32_t frames_ever_used() const override { return fresh_; }
  uint32_t evict_batch() const override { return evict_batch_; }
  uint64_t metadata_bytes() const override;
  void check_invariants() const override;
  bool wants_touches() const override { return wants_touches_; }

  // Writes that one who needs a frame begins at most, beside those for what is above the limit: he holds the lock
  // meanwhile, for which others wait, and then has them started. Whoever comes next begins more.
  static constexpr uint32_t kDemandStartsMax = 32;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Local frame indices from here on.
  FrameId global(uint32_t frame) const { return FrameId(first_frame().value + frame); }
  uint32_t local(FrameId frame) const { return frame.value - first_frame().value; }
  AtomicPinWord& word(uint32_t frame) const { return Organisation::word(global(frame)); }
  Verdict probe(uint32_t frame) override;
  void prefetch(uint32_t frame) override {
    context_.directory.prefetch_word(global(frame));
    context_.placement.prefetch(global(frame));
  }

  uint32_t take_frame();
  uint32_t frame_of_room();
  void hold(uint32_t frame, BlockId block, uint64_t refs, bool ahead);
  void choose_candidates(EvictionBatch& batch);
  Writeback::Started write_candidate(EvictionBatch& batch, uint32_t frame);
  uint32_t lock_clean(EvictionBatch& batch, PinWord* was);
  void prefetch_victims();
  void note_evicted(uint32_t evicted);
  bool finish_sweep(EvictionBatch& batch);
  bool sweep(EvictionBatch& batch, BlockId block);
  bool goes_along(uint32_t frame, const EvictionBatch& batch);
  void learn_touches();
  void remove(uint32_t frame, PinWord was);
  void free_later(uint32_t frame);

  const uint32_t reserve_high_;
  const uint32_t evict_batch_;
  const bool sweeps_groups_;
  std::unique_ptr<Policy> policy_;
  const bool wants_touches_;
  std::vector<uint32_t> free_;     // dropped frames
  uint32_t fresh_ = 0;             // frames from here on were never used
  std::vector<uint8_t> on_offer_;  // one a frame
  std::vector<Resident> victims_;  // out of the table, their memory not released yet; empty between requests
  Reserve reserve_;
  uint32_t in_writing_ = 0;
  uint64_t swept_group_ = 0;  // of which the places before swept_places_ have been looked at
  uint64_t swept_places_ = kGroupBlocks;
};

}  // namespace spw::cache
