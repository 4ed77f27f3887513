#include "durable/combining/line_profile.h"

namespace spw::durable {

void LineProfile::add_piece(std::vector<double>& flushes) const {
  const auto size_max = static_cast<uint32_t>(flushes.size() - 1);
  const locality::MissRatioCurve curve = piece_->finish().curve_of_small_sizes(size_max);
  for (uint32_t size = 1; size <= size_max; ++size)
    flushes[size] += static_cast<double>(piece_->accesses()) * curve.at(size);
}

void LineProfile::end_piece() {
  add_piece(flushes_);
  piece_.emplace(kScaleMax);
}

locality::MissRatioCurve LineProfile::curve() const {
  locality::MissRatioCurve curve;
  if (writes_ == 0) return curve;
  std::vector<double> flushes = flushes_;
  add_piece(flushes);
  for (uint32_t size = 1; size < flushes.size(); ++size)
    curve.add(size, flushes[size] / static_cast<double>(writes_));
  return curve;
}

}  // namespace spw::durable
