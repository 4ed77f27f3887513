#include "lab/locality/bursts.h"

namespace spw::lab {

void BurstSampler::end_burst() {
  const Footprint burst = current_->footprint();
  data_ += burst.data();
  gaps_.add_all(burst.gaps());
  ++bursts_;
  current_.emplace(1, data_max_);
  asleep_left_ = hibernation_;
}

MissRatioCurve BurstSampler::curve() const {
  if (bursts_ == 0) return current_->footprint().curve(false);
  const double share = 1 / static_cast<double>(bursts_);
  GapHistogram mean;
  mean.add_all(gaps_, share);
  return Footprint(static_cast<double>(burst_), data_ * share, std::move(mean)).curve(false);
}

}  // namespace spw::lab
