// LRU: the block whose last use ended longest ago goes first.
//
// A doubly linked list through the frames, the last used at the front; candidates come from the back. Ends of uses are learned
// from touches (policy.h), so the order is right but for touches that were lost or are still under way. That costs accuracy,
// never more: a frame stays in the list while it is pinned, so no lost touch can hide it from eviction, and one that turns
// out to be busy when its turn comes goes to the front (it is in use now).
//
// Invariants: a frame is in the list <=> it holds a block and is not on offer
//             links_[links_[f].next].previous = f, for the frames of the list and its anchor
//             links_[f] = {f, f} outside of it
// Threads: none (policy.h). Memory: 8 bytes a frame. Every operation but next_candidate() takes constant time; that one looks at
// each frame once at most.
#pragma once

#include <vector>

#include "cache/eviction/policy.h"

namespace spw::cache {

class LruPolicy final : public Policy {
 public:
  explicit LruPolicy(uint32_t frame_count);

  const char* name() const override { return "lru"; }
  void on_insert(uint32_t frame, BlockId) override { move_to_front(frame); }
  void on_remove(uint32_t frame) override { unlink(frame); }
  void on_keep(uint32_t frame) override { move_to_front(frame); }
  void on_touch(uint32_t frame) override;
  bool wants_touches() const override { return true; }
  uint32_t next_candidate(FrameProbe& frames) override;
  uint64_t metadata_bytes() const override { return sizeof(*this) + links_.capacity() * sizeof(Link); }
  void check_invariants(const std::vector<uint8_t>& may_be_offered) const override;

 private:
  // links_[frame_count_] is the list's anchor: its next is the front, its previous the back.
  struct Link {
    uint32_t previous;
    uint32_t next;
  };
  bool in_list(uint32_t frame) const { return links_[frame].next != frame; }
  void move_to_front(uint32_t frame);
  void unlink(uint32_t frame);

  const uint32_t frame_count_;
  std::vector<Link> links_;
};

}  // namespace spw::cache
