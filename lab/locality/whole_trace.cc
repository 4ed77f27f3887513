#include "lab/locality/whole_trace.h"

#include <algorithm>
#include <cmath>

namespace spw::lab {

namespace {

// Points of a curve: not closer than this, and hardly more than so many for each e-fold of the size.
constexpr double kPointsApart = 0.25;
constexpr double kPoints = 4096;

}  // namespace

locality::TimescaleReuse timescale_reuse(locality::Trace trace, uint64_t scale_max) {
  locality::ReuseCollector collector(scale_max);
  for (const locality::Datum datum : trace) collector.access(datum);
  return collector.finish();
}

locality::MissRatioCurve curve_of(const locality::TimescaleReuse& reuse) {
  locality::MissRatioCurve curve;
  if (reuse.accesses() == 0) return curve;
  const auto data = static_cast<double>(reuse.data());
  const double first_accesses = data / static_cast<double>(reuse.accesses());
  for (uint64_t k = 1; k < reuse.scale_max(); ++k) {
    const double size = reuse.footprint(k);
    if (size < curve.largest_size() + std::max(kPointsApart, curve.largest_size() / kPoints)) continue;
    const double hit_ratio = reuse.reuse(k + 1) - reuse.reuse(k);
    curve.add(size, std::max(1 - hit_ratio, first_accesses));
  }
  if (reuse.scale_max() == reuse.accesses()) curve.add(data, first_accesses);
  return curve;
}

double mean_error(const locality::MissRatioCurve& a, const locality::MissRatioCurve& b, double size_max,
                  size_t steps) {
  double sum = 0;
  for (size_t step = 1; step <= steps; ++step) {
    const double size = size_max * static_cast<double>(step) / static_cast<double>(steps);
    sum += std::abs(a.at(size) - b.at(size));
  }
  return sum / static_cast<double>(steps);
}

}  // namespace spw::lab
