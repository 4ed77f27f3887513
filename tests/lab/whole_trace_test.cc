#include "lab/locality/whole_trace.h"

#include <gtest/gtest.h>

#include <vector>

namespace spw::lab {
namespace {

using locality::Datum;
using locality::MissRatioCurve;

TEST(WholeTrace, of_a_loop_misses_all_until_it_fits) {
  std::vector<Datum> trace;
  for (int i = 0; i < 5000; ++i) trace.push_back(static_cast<Datum>(i % 50));
  const MissRatioCurve curve = curve_of(timescale_reuse(trace));
  EXPECT_NEAR(curve.at(48), 1, 1e-9);
  EXPECT_NEAR(curve.at(50), 0.01, 1e-9) << "the first round misses";
}

TEST(WholeTrace, the_mean_error_is_the_mean_distance) {
  MissRatioCurve a, b;
  a.add(1, 0.5);
  b.add(1, 0.25);
  EXPECT_DOUBLE_EQ(mean_error(a, b, 100), 0.25);
  EXPECT_DOUBLE_EQ(mean_error(a, a, 100), 0);
}

}  // namespace
}  // namespace spw::lab
