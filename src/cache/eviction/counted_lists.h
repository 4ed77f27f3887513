// Lists through the frames of one partition that know their sizes, and in which of them each frame is or was last.
//
// Invariant: size(l) = frames in list l
// Threads: none (policy.h). Memory: 9 bytes a frame. Every operation but check_invariants() takes constant time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "cache/eviction/frame_lists.h"

namespace spw::cache {

class CountedLists {
 public:
  CountedLists(uint32_t frame_count, uint32_t lists)
      : lists_(frame_count, lists), list_of_(frame_count), sizes_(lists) {}

  bool contains(uint32_t frame) const { return lists_.contains(frame); }
  uint32_t size(uint32_t list) const { return sizes_[list]; }
  // Of a list that is not empty.
  uint32_t back(uint32_t list) const { return lists_.back(list); }
  // Of a frame in no list, where it was last.
  uint8_t list_of(uint32_t frame) const { return list_of_[frame]; }

  // To the list's front, out of the one where it is.
  void put(uint8_t list, uint32_t frame) {
    take(frame);
    lists_.move_to_front(list, frame);
    list_of_[frame] = list;
    ++sizes_[list];
  }
  // Harmless for a frame that is in no list.
  void take(uint32_t frame) {
    if (!contains(frame)) return;
    --sizes_[list_of_[frame]];
    lists_.unlink(frame);
  }

  void prefetch(uint32_t frame) const { lists_.prefetch(frame); }
  uint64_t metadata_bytes() const {
    return lists_.metadata_bytes() + list_of_.capacity() + sizes_.capacity() * sizeof(uint32_t);
  }
  // SPW_CHECKs the lists, and that they hold the frames f with is_in_one[f] != 0.
  void check_invariants(const std::vector<uint8_t>& is_in_one) const {
    std::vector<uint32_t> expected(sizes_.size());
    for (uint32_t frame = 0; frame < list_of_.size(); ++frame) {
      SPW_CHECK(contains(frame) == (is_in_one[frame] != 0));
      if (contains(frame)) ++expected[list_of_[frame]];
    }
    for (uint32_t list = 0; list < sizes_.size(); ++list) {
      SPW_CHECK(sizes_[list] == expected[list]);
      SPW_CHECK(lists_.check_invariants(list) == expected[list]);
    }
  }

 private:
  FrameLists lists_;
  std::vector<uint8_t> list_of_;
  std::vector<uint32_t> sizes_;
};

}  // namespace spw::cache
