#include "cache/eviction/s3fifo.h"

#include <algorithm>

#include "base/check.h"

namespace spw::cache {

using Verdict = FrameProbe::Verdict;

// As many ghosts as main has room for.
S3FifoPolicy::S3FifoPolicy(uint32_t frame_count)
    : frame_count_(frame_count),
      lists_(frame_count, kLists),
      ghosts_(std::max(frame_count - frame_count / kSmallShare, 1u)),
      list_(frame_count),
      uses_(frame_count),
      fingerprints_(frame_count) {
  on_limit(frame_count);
}

void S3FifoPolicy::on_limit(uint32_t frames) { small_max_ = std::max(frames / kSmallShare, 1u); }

void S3FifoPolicy::put(List list, uint32_t frame) {
  take(frame);
  lists_.move_to_front(list, frame);
  list_[frame] = list;
  ++size_[list];
}

void S3FifoPolicy::take(uint32_t frame) {
  if (!lists_.contains(frame)) return;
  --size_[list_[frame]];
  lists_.unlink(frame);
}

void S3FifoPolicy::on_insert(uint32_t frame, BlockId block) {
  fingerprints_[frame] = Ghosts::of(block);
  uses_[frame] = kNotUsedYet;
  put(ghosts_.came_back(fingerprints_[frame]) ? kMain : kSmall, frame);
}

void S3FifoPolicy::on_remove(uint32_t frame) {
  const bool was_on_offer = !lists_.contains(frame);
  if (was_on_offer && list_[frame] == kSmall) ghosts_.left(fingerprints_[frame]);
  take(frame);
}

// A late one may be of another block by now, or of none: a use too many.
void S3FifoPolicy::on_touch(uint32_t frame) {
  if (uses_[frame] < kUsesMax) ++uses_[frame];
}

uint32_t S3FifoPolicy::candidate_of_small(FrameProbe& frames) {
  uint32_t busy_left = kBusyLooksMax;
  for (uint32_t looks = size_[kSmall]; looks > 0 && busy_left > 0; --looks) {
    const uint32_t frame = lists_.back(kSmall);
    if (frames.probe(frame) == Verdict::kBusy) {
      put(kSmall, frame);
      --busy_left;
    } else if (uses_[frame] >= kUsesToStay) {
      uses_[frame] = 0;
      put(kMain, frame);
      if (size_[kSmall] < small_max_)
        return kNoCandidate;  // main is next, as it would be for the next candidate
    } else {
      return frame;
    }
  }
  return kNoCandidate;
}

uint32_t S3FifoPolicy::candidate_of_main(FrameProbe& frames) {
  uint32_t busy_left = kBusyLooksMax;
  for (uint64_t looks = (kUsesMax + 1) * uint64_t{size_[kMain]}; looks > 0 && busy_left > 0; --looks) {
    const uint32_t frame = lists_.back(kMain);
    const bool is_busy = frames.probe(frame) == Verdict::kBusy;
    if (!is_busy && uses_[frame] <= 0) return frame;
    if (is_busy)
      --busy_left;
    else
      --uses_[frame];
    put(kMain, frame);
  }
  return kNoCandidate;
}

uint32_t S3FifoPolicy::next_candidate(FrameProbe& frames) {
  uint32_t frame = size_[kSmall] >= small_max_ ? candidate_of_small(frames) : kNoCandidate;
  if (frame == kNoCandidate) frame = candidate_of_main(frames);
  // Main is empty, or held.
  if (frame == kNoCandidate) frame = candidate_of_small(frames);
  if (frame == kNoCandidate) frame = candidate_of_main(frames);  // what small gave it just now
  if (frame != kNoCandidate) take(frame);
  return frame;
}

uint64_t S3FifoPolicy::metadata_bytes() const {
  return sizeof(*this) + lists_.metadata_bytes() + ghosts_.metadata_bytes() + list_.capacity() +
         uses_.capacity() + fingerprints_.capacity() * sizeof(Ghosts::Fingerprint);
}

void S3FifoPolicy::check_invariants(const std::vector<uint8_t>& may_be_offered) const {
  uint32_t expected[kLists] = {};
  for (uint32_t frame = 0; frame < frame_count_; ++frame) {
    SPW_CHECK(lists_.contains(frame) == (may_be_offered[frame] != 0));
    SPW_CHECK(uses_[frame] >= kNotUsedYet && uses_[frame] <= kUsesMax);
    if (lists_.contains(frame)) ++expected[list_[frame]];
  }
  for (uint32_t list = 0; list < kLists; ++list) {
    SPW_CHECK(size_[list] == expected[list]);
    SPW_CHECK(lists_.check_invariants(list) == expected[list]);
  }
}

}  // namespace spw::cache
