#include "cache/eviction/lru.h"

#include "base/check.h"

namespace spw::cache {

LruPolicy::LruPolicy(uint32_t frame_count) : frame_count_(frame_count), links_(uint64_t{frame_count} + 1) {
  for (uint32_t frame = 0; frame <= frame_count; ++frame) links_[frame] = {frame, frame};
}

void LruPolicy::move_to_front(uint32_t frame) {
  unlink(frame);
  Link& anchor = links_[frame_count_];
  links_[frame] = {frame_count_, anchor.next};
  links_[anchor.next].previous = frame;
  anchor.next = frame;
}

// Harmless for a frame that is in no list.
void LruPolicy::unlink(uint32_t frame) {
  Link link = links_[frame];
  links_[link.previous].next = link.next;
  links_[link.next].previous = link.previous;
  links_[frame] = {frame, frame};
}

// A late one may be of a frame that was evicted or offered since.
void LruPolicy::on_touch(uint32_t frame) {
  if (in_list(frame)) move_to_front(frame);
}

uint32_t LruPolicy::next_candidate(FrameProbe& frames) {
  uint32_t first_busy = kNoCandidate;
  for (;;) {
    uint32_t back = links_[frame_count_].previous;
    if (back == frame_count_ || back == first_busy)
      return kNoCandidate;  // the list is empty, or all of it busy
    if (frames.probe(back) != FrameProbe::Verdict::kBusy) {
      unlink(back);
      return back;
    }
    if (first_busy == kNoCandidate) first_busy = back;
    move_to_front(back);
  }
}

void LruPolicy::check_invariants(const std::vector<uint8_t>& may_be_offered) const {
  uint64_t expected = 1, found = 0;
  for (uint32_t frame = 0; frame < frame_count_; ++frame) {
    SPW_CHECK(in_list(frame) == (may_be_offered[frame] != 0));
    expected += in_list(frame);
  }
  uint32_t frame = frame_count_;
  do {
    SPW_CHECK(links_[links_[frame].next].previous == frame);
    frame = links_[frame].next;
    ++found;
  } while (frame != frame_count_ && found <= expected);
  SPW_CHECK(found == expected);
}

}  // namespace spw::cache
