#include "cache/eviction/clock.h"

namespace spw::cache {

uint32_t ClockPolicy::next_candidate(FrameProbe& frames) {
  // Two rounds: the first may only clear bits.
  for (uint64_t steps = 0; steps < 2 * uint64_t{frame_count_}; ++steps) {
    uint32_t frame = hand_;
    hand_ = hand_ + 1 == frame_count_ ? 0 : hand_ + 1;
    if (frames.probe(frame) == FrameProbe::Verdict::kEvictable) return frame;
  }
  return kNoCandidate;
}

}  // namespace spw::cache
