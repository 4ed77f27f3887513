// LRU: the block whose last use ended longest ago goes first.
//
// A list through the frames, the last used at the front; candidates come from the back. Ends of uses are learned from
// touches (policy.h), so the order is right but for touches that were lost or are still under way. That costs accuracy,
// never more: a frame stays in the list while it is pinned, so no lost touch can hide it from eviction, and one that
// turns out to be busy when its turn comes goes to the front (it is in use now).
//
// Invariant: a frame is in the list <=> it holds a block and is not on offer
// Threads: none (policy.h). Memory: 8 bytes a frame. Every operation but next_candidate() takes constant time; that one
// looks at each frame once at most.
#pragma once

#include "cache/eviction/frame_lists.h"
#include "cache/eviction/policy.h"

namespace spw::cache {

class LruPolicy final : public Policy {
 public:
  explicit LruPolicy(uint32_t frame_count) : frame_count_(frame_count), lists_(frame_count, 1) {}

  const char* name() const override { return "lru"; }
  void on_insert(uint32_t frame, BlockId) override { lists_.move_to_front(kAll, frame); }
  void on_remove(uint32_t frame, BlockId) override { lists_.unlink(frame); }
  void prefetch_frame(uint32_t frame) const override { lists_.prefetch(frame); }
  void on_keep(uint32_t frame) override { lists_.move_to_front(kAll, frame); }
  void on_touch(uint32_t frame) override;
  bool wants_touches() const override { return true; }
  uint32_t next_candidate(FrameProbe& frames) override;
  bool goes_along(uint32_t) override { return false; }  // its order is all it knows
  uint64_t metadata_bytes() const override { return sizeof(*this) + lists_.metadata_bytes(); }
  void check_invariants(const std::vector<uint8_t>& may_be_offered) const override;

 private:
  static constexpr uint32_t kAll = 0;

  const uint32_t frame_count_;
  FrameLists lists_;
};

}  // namespace spw::cache
