#include "durable/combining/line_profile.h"

namespace spw::durable {

locality::MissRatioCurve LineProfile::curve(uint32_t size_max) const {
  locality::MissRatioCurve curve;
  if (writes_ == 0) return curve;
  const double changes = static_cast<double>(changes_.accesses()) / static_cast<double>(writes_);
  const locality::MissRatioCurve of_changes = changes_.finish().curve_of_small_sizes(size_max);
  for (uint32_t size = 1; size <= size_max; ++size) curve.add(size, changes * of_changes.at(size));
  return curve;
}

}  // namespace spw::durable
