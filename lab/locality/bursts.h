// Bursty sampling: a stream is watched for `burst` accesses, left alone for `hibernation`, and so on; each burst counts
// as a trace of its own. (Section III-C of the paper on adaptive software caching.)
//
// What lies further apart than a burst is long is not seen: the curve ends at the footprint of a burst.
// Threads: one at a time. Memory: what a ReuseSampler needs.
#pragma once

#include <cstdint>
#include <optional>

#include "lab/locality/reuse_sampler.h"

namespace spw::lab {

class BurstSampler {
 public:
  static constexpr uint64_t kNeverAgain = UINT64_MAX;  // as `hibernation`: one burst is enough

  // Both in accesses; burst >= 1.
  BurstSampler(uint64_t burst, uint64_t hibernation, uint64_t data_max = ReuseSampler::kDataMax)
      : burst_(burst), hibernation_(hibernation), data_max_(data_max) {
    current_.emplace(1, data_max_);
  }

  void access(Datum datum) {
    if (asleep_left_ > 0) {
      if (asleep_left_ != kNeverAgain) --asleep_left_;
      return;
    }
    current_->access(datum);
    if (current_->accesses() == burst_) end_burst();
  }

  bool is_awake() const { return asleep_left_ == 0; }
  uint64_t bursts() const { return bursts_; }
  // Of all bursts that have ended, and of the one that has not if none has.
  MissRatioCurve curve() const;

 private:
  void end_burst();

  const uint64_t burst_;
  const uint64_t hibernation_;
  const uint64_t data_max_;
  std::optional<ReuseSampler> current_;
  uint64_t asleep_left_ = 0;
  uint64_t bursts_ = 0;
  // Sums over the bursts that have ended: their footprints' mean is the footprint of them all.
  double data_ = 0;
  GapHistogram gaps_;
};

}  // namespace spw::lab
