#include "cache/eviction/clock2q.h"

#include <algorithm>

#include "base/check.h"

namespace spw::cache {

using Verdict = FrameProbe::Verdict;

Clock2qPolicy::Clock2qPolicy(uint32_t frame_count)
    : lists_(frame_count, kLists), ghosts_(kGhostsAFrame * frame_count), is_unused_(frame_count) {
  on_limit(frame_count);
}

void Clock2qPolicy::on_limit(uint32_t frames) {
  probation_max_ = std::max(frames / kProbationShare, 1u);
  window_ = probation_max_ / kWindowShare;
}

void Clock2qPolicy::on_insert(uint32_t frame, BlockId block) {
  lists_.put(!is_full_ ? kMain : ghosts_.came_back(Ghosts::of(block)) ? kReturned : kNew, frame);
}

void Clock2qPolicy::on_remove(uint32_t frame, BlockId block) {
  const bool was_on_offer = !lists_.contains(frame);
  if (was_on_offer && lists_.list_of(frame) <= kOld) ghosts_.left(Ghosts::of(block));
  lists_.take(frame);
}

// What is over the window's share leaves it for the next list, its uses
// so far forgotten. Not what is held: a use that lasts is the same use.
void Clock2qPolicy::age(FrameProbe& frames, List window, List next) {
  for (uint32_t i = 0; i < kAgedAtOnce && lists_.size(window) > window_; ++i) {
    const uint32_t frame = lists_.back(window);
    const Verdict verdict = frames.probe(frame);
    is_unused_[frame] = verdict == Verdict::kEvictable;
    lists_.put(verdict == Verdict::kBusy ? window : next, frame);
  }
}

uint32_t Clock2qPolicy::candidate_on_probation(FrameProbe& frames) {
  uint32_t busy_left = kBusyLooksMax;
  for (uint32_t looks = lists_.size(kOld); looks > 0 && busy_left > 0; --looks) {
    const uint32_t frame = lists_.back(kOld);
    const Verdict verdict = frames.probe(frame);
    if (verdict == Verdict::kEvictable) return frame;
    const bool was_used = verdict == Verdict::kReferenced;
    lists_.put(was_used && !is_unused_[frame] ? kMain : kOld, frame);
    if (was_used)
      is_unused_[frame] = false;
    else
      --busy_left;
  }
  return kNoCandidate;
}

uint32_t Clock2qPolicy::candidate_of_main(FrameProbe& frames) {
  uint32_t busy_left = kBusyLooksMax;
  for (uint64_t looks = 2 * uint64_t{lists_.size(kMain)}; looks > 0 && busy_left > 0; --looks) {
    const uint32_t frame = lists_.back(kMain);
    const Verdict verdict = frames.probe(frame);
    if (verdict == Verdict::kEvictable) return frame;
    if (verdict == Verdict::kBusy) --busy_left;
    lists_.put(kMain, frame);
  }
  return kNoCandidate;
}

uint32_t Clock2qPolicy::next_candidate(FrameProbe& frames) {
  is_full_ = true;
  age(frames, kNew, kOld);
  age(frames, kReturned, kMain);
  const bool probation_first = lists_.size(kNew) + lists_.size(kOld) > probation_max_;
  uint32_t frame = probation_first ? kNoCandidate : candidate_of_main(frames);
  if (frame == kNoCandidate) frame = candidate_on_probation(frames);
  // What was on probation may be there by now, too.
  if (frame == kNoCandidate) frame = candidate_of_main(frames);
  // Only the window is left.
  for (const List window : {kNew, kReturned})
    for (uint32_t looks = lists_.size(window); frame == kNoCandidate && looks > 0; --looks) {
      const uint32_t newest = lists_.back(window);
      if (frames.probe(newest) != Verdict::kBusy)
        frame = newest;
      else
        lists_.put(window, newest);
    }
  if (frame != kNoCandidate) lists_.take(frame);
  // What the next call looks at first.
  for (const List list : {kNew, kOld, kReturned, kMain})
    if (lists_.size(list) > 0) frames.prefetch(lists_.back(list));
  return frame;
}

bool Clock2qPolicy::goes_along(uint32_t frame) {
  lists_.take(frame);
  return true;
}

uint64_t Clock2qPolicy::metadata_bytes() const {
  return sizeof(*this) + lists_.metadata_bytes() + ghosts_.metadata_bytes() + is_unused_.capacity() / 8;
}

void Clock2qPolicy::check_invariants(const std::vector<uint8_t>& may_be_offered) const {
  lists_.check_invariants(may_be_offered);
}

}  // namespace spw::cache
