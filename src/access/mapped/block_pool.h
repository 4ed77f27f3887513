// Memory of the mapped engine's blocks that are not at addresses of their own: files that are read and written by calls
// have none, and loose blocks are not there (engine.h). No page table has to be changed when they come or go.
//
// It is a memory file, so that a loose block can be mapped a second time, at its own address (loose_aliases.h).
// A frame whose block is pooled has a *place*, and gives it back when the block leaves. The memory of places that were
// given back is kept for the next blocks, but only while there is room: frames in use and places that are kept are
// never more than frames may be in use. So frames that change from pooled blocks to blocks in place, or fall to a lower
// limit, give memory back to the kernel. A frame takes the place of its own number where there is room for it, so that
// requests of frames that lie side by side are few pieces; else any that is kept.
//
// Invariants: a shard has as many places as frames, each of which one frame has or none
//             blocks in place + places with memory <= limit, and a batch of what just comes
// Threads: any, for different frames at the same time. A frame's place is read by who holds the frame: who took it
//   publishes the frame afterwards (FrameSource: ordering). Counts are relaxed: each thread sees its own changes, which
//   is enough for who exceeds the limit.
// Limits: frame_count places.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/atomic.h"
#include "base/ids.h"
#include "base/status.h"
#include "base/units.h"
#include "cache/frame_pool/frame_source.h"
#include "platform/file.h"
#include "platform/memory.h"

namespace spw::access {

class BlockPool {
 public:
  static constexpr uint32_t kNoPlace = cache::FrameSource::Placement::kNoPlace;
  static constexpr uint32_t kInPlace = cache::FrameSource::Placement::kPlaced;

  static Result<std::unique_ptr<BlockPool>> create(uint32_t frame_count, unsigned block_shift);

  struct Place {
    std::byte* data;
    bool is_zero;  // there was no memory behind it
  };
  // The frame's; it gets one if it has none.
  Place take(FrameId frame) { return take(frame, false); }
  // That of a frame whose block was in place, and leaves it. Some memory is kept for them beyond the limit.
  std::byte* take_instead(FrameId frame);
  // The frame has it no longer.
  void give_back(std::byte* place);
  // The frames' blocks are in place; again: nothing more.
  void note_in_place(std::span<const cache::Resident> residents);
  // The frames' blocks have left, wherever they were.
  void give_back(std::span<const cache::Resident> residents);
  // Of frames in use.
  void set_limit(uint32_t frames);

  std::byte* base() const { return memory_.data(); }
  // Where base() + n is at n.
  const platform::File& file() const { return file_; }
  // By frame: the number of its place, kInPlace or kNoPlace.
  const Atomic<uint32_t>* places() const { return places_.get(); }

 private:
  static constexpr uint32_t kShards = 16;
  static constexpr uint32_t kEmptiedTogether = 64;
  static constexpr uint64_t kEmptiedBytes = 512 * kKiB;
  static constexpr uint32_t kLiftsShare = 64, kLiftsMax = 256;  // of the limit, and at most
  struct alignas(64) Shard {
    std::mutex mutex;
    std::vector<uint32_t> unused;  // places; there is no memory behind the first `empty` of them
    size_t empty = 0;
  };

  BlockPool(platform::File file, platform::Mapping memory, uint32_t frame_count, unsigned block_shift);
  std::byte* address_of(uint32_t place) const { return memory_.data() + (uint64_t{place} << block_shift_); }
  Shard& shard_of(FrameId frame) const { return shards_[frame.value % kShards]; }
  // A place is its frames' shard's for ever, whichever of them has it.
  void put_back(uint32_t place);
  // Under the shard's lock; at: in `unused`.
  void put(Shard& shard, uint32_t place);
  Place take(FrameId frame, bool rather_kept);
  uint32_t choose(const Shard& shard, uint32_t frame, bool rather_kept) const;
  uint32_t take_out(Shard& shard, uint32_t at, bool is_empty);
  uint32_t with_memory() const { return in_place_.load_relaxed() + backed_.load_relaxed(); }
  uint32_t most_with_memory() const { return limit_.load_relaxed() + kept_for_lifts_.load_relaxed(); }
  bool has_room() const { return with_memory() < most_with_memory(); }
  // What is kept beyond the limit goes.
  void keep_to_limit() {
    if (with_memory() > most_with_memory()) [[unlikely]]
      empty_some();
  }
  void empty_some();
  uint32_t empty_oldest(Shard& shard, uint32_t most);
  void remove_memory(std::span<uint32_t> places) const;

  platform::File file_;
  platform::Mapping memory_;
  const unsigned block_shift_;
  const uint32_t emptied_min_;  // together, so that it is not done for each
  std::unique_ptr<Atomic<uint32_t>[]> places_;
  std::unique_ptr<uint32_t[]> unused_at_;  // of each place, while it is unused; under its shard's lock
  std::unique_ptr<Shard[]> shards_;
  Atomic<uint32_t> limit_;
  Atomic<uint32_t> kept_for_lifts_{0};  // places beyond the limit, once something was lifted
  Atomic<uint32_t> turn_{0};            // the shard that is asked next for what it keeps
  alignas(64) Atomic<uint32_t> in_place_{0};
  alignas(64) Atomic<uint32_t> backed_{0};  // places with memory, whether frames have them or not
};

}  // namespace spw::access
