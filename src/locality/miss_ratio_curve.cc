#include "locality/miss_ratio_curve.h"

#include <algorithm>

namespace spw::locality {

void MissRatioCurve::add(double size, double miss_ratio) {
  const Point& last = points_.back();
  if (size <= last.size) return;
  points_.push_back({size, std::clamp(miss_ratio, 0.0, last.miss_ratio)});
}

double MissRatioCurve::at(double size) const {
  const auto after = std::upper_bound(points_.begin(), points_.end(), size,
                                      [](double wanted, const Point& point) { return wanted < point.size; });
  if (after == points_.begin()) return 1;
  const Point& left = *(after - 1);
  if (after == points_.end()) return left.miss_ratio;
  const double share = (size - left.size) / (after->size - left.size);
  return left.miss_ratio + share * (after->miss_ratio - left.miss_ratio);
}

}  // namespace spw::locality
