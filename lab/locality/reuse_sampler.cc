#include "lab/locality/reuse_sampler.h"

#include <algorithm>

namespace spw::lab {

ReuseSampler::ReuseSampler(double rate, uint64_t data_max) : data_max_(data_max), sample_(rate) {}

void ReuseSampler::sampled_access(Datum datum) {
  const uint64_t before = last_.exchange(datum, accesses_);
  const double weight = 1 / rate();
  if (before == 0) data_ += weight;
  gaps_.add(accesses_ - before, weight);  // its first access is as far from the time before all
  if (last_.size() > data_max_) lower_rate();
}

void ReuseSampler::lower_rate() {
  while (last_.size() > data_max_ && sample_.can_halve()) {
    sample_.halve();
    last_.retain([this](Datum datum) { return samples(datum); });
  }
}

Footprint ReuseSampler::footprint() const {
  GapHistogram gaps = gaps_;
  const double weight = 1 / rate();
  last_.for_each([&](const LastAccess::Entry& entry) { gaps.add(accesses_ - entry.time + 1, weight); });
  return Footprint(static_cast<double>(accesses_), data_, std::move(gaps));
}

}  // namespace spw::lab
