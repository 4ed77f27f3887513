// Doubly linked lists through the frames of one partition: a frame is in one of them or in none.
//
// Invariants: links_[links_[f].next].previous = f, for the frames of a list and its anchor
//             links_[f] = {f, f} for a frame that is in none
// Threads: none (policy.h). Memory: 8 bytes a frame. Every operation but check_invariants() takes constant time.
#pragma once

#include <cstdint>
#include <vector>

namespace spw::cache {

class FrameLists {
 public:
  FrameLists(uint32_t frame_count, uint32_t lists);

  bool contains(uint32_t frame) const { return links_[frame].next != frame; }
  bool is_empty(uint32_t list) const { return links_[anchor(list)].next == anchor(list); }
  // Of a list that is not empty.
  uint32_t back(uint32_t list) const { return links_[anchor(list)].previous; }
  // Of a frame in no list or another one, which it leaves.
  void move_to_front(uint32_t list, uint32_t frame);
  // Harmless for a frame that is in no list.
  void unlink(uint32_t frame);

  void prefetch(uint32_t frame) const { __builtin_prefetch(&links_[frame], 1); }
  uint64_t metadata_bytes() const { return links_.capacity() * sizeof(Link); }
  // SPW_CHECKs the links; returns the number of frames in the list.
  uint32_t check_invariants(uint32_t list) const;

 private:
  // Those behind the frames' are the lists' anchors: next is the front, previous the back.
  struct Link {
    uint32_t previous;
    uint32_t next;
  };
  uint32_t anchor(uint32_t list) const { return frame_count_ + list; }

  const uint32_t frame_count_;
  std::vector<Link> links_;
};

}  // namespace spw::cache
