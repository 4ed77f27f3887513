#include "locality/miss_ratio_curve.h"

#include <algorithm>
#include <cmath>

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

double MissRatioCurve::size_for(double miss_ratio) const {
  for (size_t i = 0; i < points_.size(); ++i) {
    const Point& point = points_[i];
    if (point.miss_ratio > miss_ratio) continue;
    if (i == 0) return point.size;
    const Point& before = points_[i - 1];
    const double share = (before.miss_ratio - miss_ratio) / (before.miss_ratio - point.miss_ratio);
    return before.size + share * (point.size - before.size);
  }
  return -1;
}

std::vector<MissRatioCurve::Knee> MissRatioCurve::knees(double size_max, size_t count,
                                                        double drop_min) const {
  std::vector<Knee> found;
  double before = at(0);
  bool was_steep = false;
  for (size_t piece = 1; piece <= kKneePieces; ++piece) {
    const double size = size_max * static_cast<double>(piece) / static_cast<double>(kKneePieces);
    const double here = at(size);
    const bool is_steep = before - here >= drop_min;
    if (is_steep && was_steep)
      found.back() = {size, here, found.back().drop + (before - here)};
    else if (is_steep)
      found.push_back({size, here, before - here});
    was_steep = is_steep;
    before = here;
  }
  std::sort(found.begin(), found.end(), [](const Knee& a, const Knee& b) {
    return a.drop != b.drop ? a.drop > b.drop : a.size < b.size;
  });
  found.resize(std::min(found.size(), count));
  return found;
}

double MissRatioCurve::mean_error(const MissRatioCurve& other, double size_max, size_t steps) const {
  double sum = 0;
  for (size_t step = 1; step <= steps; ++step) {
    const double size = size_max * static_cast<double>(step) / static_cast<double>(steps);
    sum += std::abs(at(size) - other.at(size));
  }
  return sum / static_cast<double>(steps);
}

}  // namespace spw::locality
