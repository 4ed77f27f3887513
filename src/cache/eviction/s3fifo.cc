#include "cache/eviction/s3fifo.h"

#include <algorithm>

#include "base/check.h"

namespace spw::cache {

using Verdict = FrameProbe::Verdict;

// As many ghosts as main has room for.
S3FifoPolicy::S3FifoPolicy(uint32_t frame_count)
    : lists_(frame_count, kLists),
      ghosts_(std::max(frame_count - frame_count / kSmallShare, 1u)),
      uses_(frame_count) {
  on_limit(frame_count);
}

void S3FifoPolicy::on_limit(uint32_t frames) { small_max_ = std::max(frames / kSmallShare, 1u); }

void S3FifoPolicy::on_insert(uint32_t frame, BlockId block) {
  uses_[frame] = kNotUsedYet;
  lists_.put(ghosts_.came_back(Ghosts::of(block)) ? kMain : kSmall, frame);
}

void S3FifoPolicy::on_remove(uint32_t frame, BlockId block) {
  const bool was_on_offer = !lists_.contains(frame);
  if (was_on_offer && lists_.list_of(frame) == kSmall) ghosts_.left(Ghosts::of(block));
  lists_.take(frame);
}

// A late one may be of another block by now, or of none: a use too many.
void S3FifoPolicy::on_touch(uint32_t frame) {
  if (uses_[frame] < kUsesMax) ++uses_[frame];
}

uint32_t S3FifoPolicy::candidate_of_small(FrameProbe& frames) {
  uint32_t busy_left = kBusyLooksMax;
  for (uint32_t looks = lists_.size(kSmall); looks > 0 && busy_left > 0; --looks) {
    const uint32_t frame = lists_.back(kSmall);
    if (frames.probe(frame) == Verdict::kBusy) {
      lists_.put(kSmall, frame);
      --busy_left;
    } else if (uses_[frame] >= kUsesToStay) {
      uses_[frame] = 0;
      lists_.put(kMain, frame);
      if (lists_.size(kSmall) < small_max_)
        return kNoCandidate;  // main is next, as it would be for the next candidate
    } else {
      return frame;
    }
  }
  return kNoCandidate;
}

uint32_t S3FifoPolicy::candidate_of_main(FrameProbe& frames) {
  uint32_t busy_left = kBusyLooksMax;
  for (uint64_t looks = (kUsesMax + 1) * uint64_t{lists_.size(kMain)}; looks > 0 && busy_left > 0; --looks) {
    const uint32_t frame = lists_.back(kMain);
    const bool is_busy = frames.probe(frame) == Verdict::kBusy;
    if (!is_busy && uses_[frame] <= 0) return frame;
    if (is_busy)
      --busy_left;
    else
      --uses_[frame];
    lists_.put(kMain, frame);
  }
  return kNoCandidate;
}

uint32_t S3FifoPolicy::next_candidate(FrameProbe& frames) {
  uint32_t frame = lists_.size(kSmall) >= small_max_ ? candidate_of_small(frames) : kNoCandidate;
  if (frame == kNoCandidate) frame = candidate_of_main(frames);
  // Main is empty, or held.
  if (frame == kNoCandidate) frame = candidate_of_small(frames);
  if (frame == kNoCandidate) frame = candidate_of_main(frames);  // what small gave it just now
  if (frame != kNoCandidate) lists_.take(frame);
  return frame;
}

bool S3FifoPolicy::goes_along(uint32_t frame) {
  if (uses_[frame] > 0) return false;
  lists_.take(frame);
  return true;
}

uint64_t S3FifoPolicy::metadata_bytes() const {
  return sizeof(*this) + lists_.metadata_bytes() + ghosts_.metadata_bytes() + uses_.capacity();
}

void S3FifoPolicy::check_invariants(const std::vector<uint8_t>& may_be_offered) const {
  lists_.check_invariants(may_be_offered);
  for (const int8_t uses : uses_) SPW_CHECK(uses >= kNotUsedYet && uses <= kUsesMax);
}

}  // namespace spw::cache
