// How a partition keeps its frames: who gets one, and who has to leave for it. Two ways:
//
//   RankedFrames  (ranked_frames.h)            a policy ranks all of the partition's blocks; only the owner changes anything
//   SetFrames     (../page_sets/set_frames.h)  sets of eight frames; clients take frames by themselves, under a set's lock
//
// Either way a block's dirty bit is cleared, and its writeback begun and ended, by the partition's owner only. So a
// dirty frame keeps its block until the owner does something.
// Threads: the owner's, but for prefetch_block(), take_alone(), wants_owner(), ahead_used() and the counts.
#pragma once

#include <algorithm>
#include <memory>

#include "cache/eviction/policy.h"
#include "cache/partition/context.h"
#include "cache/partition/touch_ring.h"

namespace spw::cache {

class Writeback;

// One eviction: what it wants, how far it may go, and how far it has come. Each of its steps is handed it.
struct EvictionBatch {
  uint32_t wanted = 0;       // frames
  uint32_t starts_left = 0;  // writes that it may still begin
  uint32_t evicted = 0;
  bool lifts = false;   // what is written now leaves its place for it (Writeback)
  bool sweeps = false;  // what is written now belongs to a group that is swept: what was used goes, too

  bool has_begun_all() const { return starts_left == 0; }
};

// Neighbours that one client holds, or gets frames for, at a time are at most this share of a partition's: others need
// some, too.
inline constexpr uint32_t kRunShare = 8;

class Organisation {
 public:
  // `writeback`: who writes what has to be written before it can leave.
  Organisation(PartitionContext& context, PartitionId id, Writeback& writeback)
      : context_(context),
        id_(id),
        writeback_(writeback),
        frame_count_(context.directory.shares().of(id)),
        limit_(frame_count_),
        free_count_(frame_count_) {}
  virtual ~Organisation() = default;

  enum class Take : uint8_t {
    kTaken,    // `frame` holds the block now, which is to be filled: its word says so, with `refs` references
    kPresent,  // the block has a frame already
    kNone,     // nothing can be evicted for it now
  };
  struct Taken {
    Take how;
    FrameId frame = kNoFrame;
  };
  // Any thread: take() of the block comes soon, most likely. Where it is cached has been looked up already.
  virtual void prefetch_block(BlockId) const {}
  virtual Taken take(BlockId block, uint64_t refs, bool ahead) = 0;
  // take() of neighbours with one reference each, from `first` on as far as they are absent and frames can be had
  // without much waiting for the others; into `frames`. How many of them.
  virtual uint32_t take_run(BlockId /*first*/, uint32_t /*count*/, FrameId* /*frames*/) { return 0; }
  // So many are about to be taken: what lacks is best evicted for all of them together.
  virtual void make_room(uint32_t /*frames*/) {}
  // Whether the block of a frame that was just taken had gone a short while before. Not all remember.
  virtual bool came_back(FrameId) const { return false; }
  // Like take(), by any client, with one reference. Only where clients_take() frames by themselves.
  virtual bool clients_take() const { return false; }
  virtual Taken take_alone(BlockId) { return {Take::kNone}; }
  // take() by the owner found none: starts the writes that will make
  // room for the block. Whether it is worth waiting for them.
  virtual bool start_writes_for(BlockId block) = 0;
  // Like take(), wherever a frame may be: when it is not worth waiting.
  virtual Taken take_from_afar(BlockId, uint64_t /*refs*/) { return {Take::kNone}; }
  // Evicts up to `wanted` blocks more; what stands in the way is being written then. Stops early when it has begun all
  // the writes that it may.
  virtual void evict(EvictionBatch& batch) = 0;
  // Takes `block` out of the frame if it is there, nobody holds it and it is not being written. The frame is free once
  // release_dropped() was called.
  enum class Drop : uint8_t { kAny, kClean };
  virtual bool drop(FrameId frame, BlockId block, Drop which, PinWord* was) = 0;
  virtual bool drop_failed(FrameId frame) = 0;
  virtual void release_dropped() = 0;
  // When these return, an eviction of the block, or from the frame,
  // that another thread had begun is over: the memory is given back.
  virtual void await_eviction(BlockId) {}
  virtual void await_evictions_from(FrameId) {}
  // A dirty block lies beside one that is written for an eviction: whether it is written with it. One that is still
  // being stored to would have to be written again.
  virtual bool is_written_along(FrameId, PinWord /*seen*/) const { return true; }
  // The frame's block is being written (for `batch`, if for any); and that has ended.
  virtual void note_writing(FrameId, const EvictionBatch* /*batch*/) {}
  virtual void note_settled(FrameId) {}
  // What clients noted for the owner to do.
  virtual void catch_up() {}
  // There is so much of that that the owner should be called.
  virtual bool wants_owner() const { return false; }
  // Frames of the partition beyond so many were never used.
  virtual uint32_t frames_ever_used() const = 0;
  // Blocks that are best evicted at once.
  virtual uint32_t evict_batch() const = 0;
  virtual uint64_t metadata_bytes() const = 0;
  virtual void check_invariants() const = 0;

  // The partition's policy is told by clients which uses ended.
  virtual bool wants_touches() const { return false; }
  TouchRings& touches() { return touches_; }

  // Blocks that were read ahead have been used, or are gone.
  void ahead_used(uint32_t blocks = 1) { ahead_unused_.fetch_sub_relaxed(blocks); }
  uint32_t ahead_unused() const { return ahead_unused_.load_relaxed(); }

  // Frames that a miss may take without an eviction.
  uint32_t free_frames() const {
    const uint32_t used = used_frames(), limit = limit_.load_relaxed();
    return used < limit ? limit - used : 0;
  }
  uint32_t used_frames() const { return frame_count_ - free_count_.load_relaxed(); }
  uint32_t peak_frames() const { return peak_.load_relaxed(); }
  uint32_t frame_count() const { return frame_count_; }
  // Frames that may be in use, from the next miss on.
  uint32_t limit() const { return limit_.load_relaxed(); }
  void set_limit(uint32_t frames) { limit_.store_relaxed(frames); }
  uint32_t run_max() const { return std::max(limit() / kRunShare, 1u); }
  // So many blocks more have come and gone elsewhere that would have been this partition's.
  void note_passed(uint32_t blocks) { passed_.fetch_add_relaxed(blocks); }

 protected:
  FrameId first_frame() const { return context_.directory.shares().first(id_); }
  AtomicPinWord& word(FrameId frame) const { return context_.directory.word(frame); }
  void note_taken() {
    const uint32_t free = free_count_.fetch_sub_relaxed(1) - 1;
    uint32_t peak = peak_.load_relaxed();
    while (peak < frame_count_ - free && !peak_.cas_weak_acquire(peak, frame_count_ - free)) {
    }
  }
  uint32_t take_passed() { return passed_.load_relaxed() == 0 ? 0 : passed_.exchange_relaxed(0); }
  void note_freed(uint32_t frames) { free_count_.fetch_add_relaxed(frames); }

  PartitionContext& context_;
  const PartitionId id_;
  Writeback& writeback_;
  const uint32_t frame_count_;
  TouchRings touches_;
  Atomic<uint32_t> ahead_unused_;

 private:
  Atomic<uint32_t> limit_;
  Atomic<uint32_t> passed_{0};
  Atomic<uint32_t> free_count_;
  Atomic<uint32_t> peak_;
};

// RankedFrames by this policy, or SetFrames if there is none. In create.cc, where that is decided.
std::unique_ptr<Organisation> make_organisation(PartitionContext& context, PartitionId id,
                                                Writeback& writeback, std::unique_ptr<Policy> policy);

}  // namespace spw::cache
