#include "cache/eviction/lru.h"

#include "base/check.h"

namespace spw::cache {

// A late one may be of a frame that was evicted or offered since.
void LruPolicy::on_touch(uint32_t frame) {
  if (lists_.contains(frame)) lists_.move_to_front(kAll, frame);
}

uint32_t LruPolicy::next_candidate(FrameProbe& frames) {
  uint32_t first_busy = kNoCandidate;
  while (!lists_.is_empty(kAll)) {
    uint32_t back = lists_.back(kAll);
    if (back == first_busy) break;  // all are
    if (frames.probe(back) != FrameProbe::Verdict::kBusy) {
      lists_.unlink(back);
      return back;
    }
    if (first_busy == kNoCandidate) first_busy = back;
    lists_.move_to_front(kAll, back);
  }
  return kNoCandidate;
}

void LruPolicy::check_invariants(const std::vector<uint8_t>& may_be_offered) const {
  uint32_t expected = 0;
  for (uint32_t frame = 0; frame < frame_count_; ++frame) {
    SPW_CHECK(lists_.contains(frame) == (may_be_offered[frame] != 0));
    expected += lists_.contains(frame);
  }
  SPW_CHECK(lists_.check_invariants(kAll) == expected);
}

}  // namespace spw::cache
