#include "locality/timescale_reuse.h"

#include <algorithm>

namespace spw::locality {

namespace {

// Points of a curve: not closer than this, and hardly more than so many for each e-fold of the size.
constexpr double kPointsApart = 0.25;
constexpr double kPoints = 4096;

}  // namespace

MissRatioCurve TimescaleReuse::curve(bool has_beginning) const {
  MissRatioCurve curve;
  if (accesses_ == 0) return curve;
  const double first_accesses =
      has_beginning ? static_cast<double>(data_) / static_cast<double>(accesses_) : 0;
  for (uint64_t k = 1; k < scale_max(); ++k) {
    const double size = footprint(k);
    if (size < curve.largest_size() + std::max(kPointsApart, curve.largest_size() / kPoints)) continue;
    const double hit_ratio = reuse(k + 1) - reuse(k);
    curve.add(size, std::max(1 - hit_ratio, first_accesses));
  }
  if (has_beginning && scale_max() == accesses_) curve.add(static_cast<double>(data_), first_accesses);
  return curve;
}

ReuseCollector::ReuseCollector(uint64_t scale_max) : scale_max_(scale_max), times_(1), reuses_(1) {}

void ReuseCollector::access(Datum datum) {
  ++accesses_;
  const uint64_t before = last_.exchange(datum, accesses_);
  if (accesses_ <= scale_max_) {
    reuses_.push_back(before != 0);
    times_.push_back(0);
  }
  if (before != 0 && accesses_ - before < times_.size()) ++times_[accesses_ - before];
}

TimescaleReuse ReuseCollector::finish() const {
  const uint64_t scale_max = std::min(scale_max_, accesses_);
  // [j]: whether the access that is the j-th from the end begins a reuse interval. Those that do not are the data's last ones.
  std::vector<uint8_t> begins(scale_max + 1, 1);
  last_.for_each([&](const LastAccess::Entry& entry) {
    const uint64_t from_end = accesses_ - entry.time + 1;
    if (from_end <= scale_max) begins[from_end] = 0;
  });
  std::vector<uint64_t> counts(scale_max + 1);
  uint64_t slope = 0;  // counts[k] - counts[k - 1]
  for (uint64_t k = 1; k <= scale_max; ++k) {
    counts[k] = counts[k - 1] + slope;
    // Wraps around where more intervals end here than begin; their sum never does.
    slope += times_[k] - reuses_[k] - begins[k];
  }
  return TimescaleReuse(accesses_, last_.size(), std::move(counts));
}

TimescaleReuse timescale_reuse(Trace trace, uint64_t scale_max) {
  ReuseCollector collector(scale_max);
  for (const Datum datum : trace) collector.access(datum);
  return collector.finish();
}

}  // namespace spw::locality
