#include "files/flush_choice.h"

namespace spw::files {

bool FlushChoice::enter(Phase phase, Way way, uint64_t now_ns) {
  const uint64_t lasts_ns = phase == Phase::kSettle    ? kSettleNs
                            : phase == Phase::kMeasure ? kMeasureNs
                                                       : kKeepNs;
  phase_ = phase;
  began_ns_ = now_ns;
  next_ns_.store_relaxed(now_ns + lasts_ns);
  const bool is_other = way != way_.load_relaxed();
  way_.store_relaxed(way);
  return is_other;
}

bool FlushChoice::go_on(uint64_t now_ns, const Figures& figures) {
  const Way way = way_.load_relaxed();
  if (phase_ == Phase::kKept) return enter(Phase::kSettle, Way::kDirect, now_ns);
  if (phase_ == Phase::kSettle) {
    before_ = figures;
    return enter(Phase::kMeasure, way, now_ns);
  }
  const double paid = static_cast<double>(figures.written - before_.written) +
                      static_cast<double>(before_.dirty) - static_cast<double>(figures.dirty);
  const double rate = paid / static_cast<double>(now_ns - began_ns_);
  if (way == Way::kDirect) {
    direct_rate_ = rate;
    return enter(Phase::kSettle, Way::kBackground, now_ns);
  }
  const bool is_ahead = rate * 100 > direct_rate_ * (100 + kAheadPercent);
  return enter(Phase::kKept, is_ahead ? Way::kBackground : Way::kDirect, now_ns);
}

}  // namespace spw::files
