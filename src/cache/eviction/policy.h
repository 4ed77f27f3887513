// Eviction policies: in which order the blocks of one partition leave memory.
//
// A policy sees the frames of its partition by local index, 0 <= f < frame_count. The partition asks for candidates
// ahead of need (to write dirty ones behind in time) and evicts each some time later, unless it was used meanwhile:
//
//     on_insert(f) -> on_touch(f)* -> next_candidate() = f -> on_remove(f)      evicted
//                                                          -> on_keep(f)        used again, pinned or not wanted yet
//
// Between next_candidate() = f and on_remove(f) or on_keep(f), f is on offer and not offered again. A frame that is
// written together with a candidate, as its neighbour, may go with it: goes_along(f) = true is next_candidate() = f.
//
// Threads: none, but for prefetches; the partition's owner calls. A policy keeps no locks and may use plain memory.
// Limits: next_candidate looks at a bounded number of frames and may give up (kNoCandidate) though some exist.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace spw::cache {

inline constexpr uint32_t kNoCandidate = UINT32_MAX;

// What a policy may ask about frames.
class FrameProbe {
 public:
  virtual ~FrameProbe() = default;
  enum class Verdict : uint8_t {
    kEvictable,   // nobody holds it, and it was not used since the bit was last cleared
    kReferenced,  // nobody holds it, but it was used; the bit is cleared by this call
    kBusy,        // empty, pinned, being filled or written, or on offer
  };
  virtual Verdict probe(uint32_t frame) = 0;
  // probe() of the frame comes soon.
  virtual void prefetch(uint32_t) {}
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual const char* name() const = 0;
  virtual void on_insert(uint32_t frame, BlockId block) = 0;
  // `block`: which it held.
  virtual void on_remove(uint32_t frame, BlockId block) = 0;
  virtual void on_keep(uint32_t frame) = 0;
  // A use ended: a reference count went 1 -> 0. Comes late, in batches, and not always, so also for a frame that is on
  // offer, is empty or holds another block by now (partition/touch_ring.h). Only if wants_touches().
  virtual void on_touch(uint32_t frame) = 0;
  virtual bool wants_touches() const = 0;
  // Whether the block of a frame that has just been inserted had left a short while ago. Not all remember.
  virtual bool came_back(uint32_t /*frame*/) const { return false; }
  // Whether a bit of use that is set says that the block was used lately: it is cleared some time before the frame is
  // offered, not just when it is.
  virtual bool clears_ahead() const { return false; }
  // So many frames may be in use from now on.
  virtual void on_limit(uint32_t) {}
  // So many blocks more have come and gone elsewhere, which would have done so here: who remembers blocks that left
  // forgets them as if they had.
  virtual void on_passed(uint32_t /*blocks*/) {}
  // The next frame to evict, which is then on offer.
  virtual uint32_t next_candidate(FrameProbe& frames) = 0;
  // Whether a frame that is not on offer may go before its turn; it is on offer then. Its bit of use is clear, or
  // is about to be cleared: where a group is swept, what was used goes as well (partition/ranked_frames.h).
  virtual bool goes_along(uint32_t frame) = 0;
  // Any thread: on_insert() or on_remove() of the block, or of the frame, comes soon. Reads nothing that changes.
  virtual void prefetch_block(BlockId) const {}
  virtual void prefetch_frame(uint32_t) const {}
  virtual uint64_t metadata_bytes() const = 0;
  // SPW_CHECKs the policy's own structure, and that it has in store what it may offer: may_be_offered[f] != 0 for every
  // frame that holds a block and is not on offer.
  virtual void check_invariants(const std::vector<uint8_t>& may_be_offered) const = 0;
};

// By name: "clock", "clock2q+", "lru", "s3-fifo". EINVAL with the names there are.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name, uint32_t frame_count);

}  // namespace spw::cache
