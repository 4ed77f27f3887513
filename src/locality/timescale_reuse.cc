#include "locality/timescale_reuse.h"

#include <algorithm>

namespace spw::locality {

MissRatioCurve TimescaleReuse::curve_of_small_sizes(uint32_t size_max) const {
  // Far below 1 / (accesses a window), far above what rounding does to a footprint.
  constexpr double kRounding = 1e-6;
  const uint64_t scale = std::min(scale_max(), std::max<uint64_t>(accesses_ / 2, 2));
  MissRatioCurve curve;
  uint64_t k = 1;
  for (uint32_t size = 1; size <= size_max; ++size) {
    while (k + 1 < scale && footprint(k + 1) <= size + kRounding) ++k;
    curve.add(size, k < scale ? 1 - (reuse(k + 1) - reuse(k)) : 1);
  }
  return curve;
}

ReuseCollector::ReuseCollector(uint64_t scale_max) : scale_max_(scale_max), times_(1), reuses_(1) {
  SPW_CHECK(scale_max >= 1);
}

void ReuseCollector::access(Datum datum) {
  ++accesses_;
  const uint64_t oldest = std::max(section_began_, accesses_ - std::min(accesses_, scale_max_) + 1);
  const uint64_t before = last_.exchange(datum, accesses_, oldest);
  if (accesses_ <= scale_max_) {
    newest_ = begins_.size();
    begins_.push_back(0);
    reuses_.push_back(before != 0);
    times_.push_back(0);
  } else {
    if (++newest_ == scale_max_) newest_ = 0;
    begins_[newest_] = 0;
  }
  if (before == 0) {
    ++data_;
    return;
  }
  const uint64_t time = accesses_ - before;
  ++times_[time];
  begins_[newest_ >= time ? newest_ - time : newest_ + scale_max_ - time] = 1;
}

TimescaleReuse ReuseCollector::finish() const {
  const uint64_t scale_max = std::min(scale_max_, accesses_);
  std::vector<uint64_t> counts(scale_max + 1);
  uint64_t slope = 0;      // counts[k] - counts[k - 1]
  size_t place = newest_;  // of the access that is the k-th from the end
  for (uint64_t k = 1; k <= scale_max; ++k) {
    counts[k] = counts[k - 1] + slope;
    // Wraps around where more intervals end here than begin; their sum never does.
    slope += times_[k] - reuses_[k] - begins_[place];
    place = (place == 0 ? begins_.size() : place) - 1;
  }
  return TimescaleReuse(accesses_, data_, std::move(counts));
}

}  // namespace spw::locality
