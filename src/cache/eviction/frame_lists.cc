#include "cache/eviction/frame_lists.h"

#include "base/check.h"

namespace spw::cache {

FrameLists::FrameLists(uint32_t frame_count, uint32_t lists)
    : frame_count_(frame_count), links_(uint64_t{frame_count} + lists) {
  for (uint32_t frame = 0; frame < links_.size(); ++frame) links_[frame] = {frame, frame};
}

void FrameLists::move_to_front(uint32_t list, uint32_t frame) {
  unlink(frame);
  Link& at = links_[anchor(list)];
  links_[frame] = {anchor(list), at.next};
  links_[at.next].previous = frame;
  at.next = frame;
}

void FrameLists::unlink(uint32_t frame) {
  Link link = links_[frame];
  links_[link.previous].next = link.next;
  links_[link.next].previous = link.previous;
  links_[frame] = {frame, frame};
}

uint32_t FrameLists::check_invariants(uint32_t list) const {
  uint32_t found = 0;
  for (uint32_t at = anchor(list);; ++found) {
    SPW_CHECK(links_[links_[at].next].previous == at);
    at = links_[at].next;
    if (at == anchor(list)) return found;
    SPW_CHECK(at < frame_count_ && found < frame_count_);
  }
}

}  // namespace spw::cache
