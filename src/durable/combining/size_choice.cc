#include "durable/combining/size_choice.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace spw::durable {

namespace {

struct Knee {
  uint32_t size;
  double drop;  // of the miss ratio, on the obvious piece that ends here
};

std::vector<Knee> knees_of(const locality::MissRatioCurve& curve, uint32_t size_max) {
  const double at_one = curve.at(1);
  std::vector<Knee> knees;
  bool is_falling = false;
  for (uint32_t size = 2; size <= size_max; ++size) {
    const double decrease = curve.at(size - 1) - curve.at(size);
    if (decrease <= 0 || decrease < at_one * (is_falling ? kFaintShare : kObviousShare)) {
      is_falling = false;
    } else if (is_falling) {
      knees.back() = {size, knees.back().drop + decrease};
    } else {
      knees.push_back({size, decrease});
      is_falling = true;
    }
  }
  return knees;
}

}  // namespace

uint32_t choose_size(const locality::MissRatioCurve& curve, uint32_t size_max) {
  SPW_CHECK(size_max >= 1);
  std::vector<Knee> knees = knees_of(curve, size_max);
  if (knees.empty()) {
    const double at_one = curve.at(1);
    const bool one_is_enough =
        1 - at_one >= kObviousShare && at_one - curve.at(size_max) <= kObviousShare * at_one;
    return one_is_enough ? 1 : size_max;
  }
  std::sort(knees.begin(), knees.end(), [](const Knee& a, const Knee& b) {
    return a.drop != b.drop ? a.drop > b.drop : a.size > b.size;
  });
  knees.resize(std::min(knees.size(), kKneesMax));
  const auto largest = std::max_element(knees.begin(), knees.end(),
                                        [](const Knee& a, const Knee& b) { return a.size < b.size; });
  return largest->size;
}

}  // namespace spw::durable
