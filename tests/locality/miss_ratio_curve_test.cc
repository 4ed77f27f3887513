#include "locality/miss_ratio_curve.h"

#include <gtest/gtest.h>

namespace spw::locality {
namespace {

TEST(MissRatioCurve, misses_all_at_size_zero_and_is_a_line_between_points) {
  MissRatioCurve curve;
  curve.add(10, 0.5);
  curve.add(20, 0.25);
  EXPECT_DOUBLE_EQ(curve.at(0), 1);
  EXPECT_DOUBLE_EQ(curve.at(5), 0.75);
  EXPECT_DOUBLE_EQ(curve.at(10), 0.5);
  EXPECT_DOUBLE_EQ(curve.at(16), 0.35);
  EXPECT_DOUBLE_EQ(curve.at(100), 0.25);
}

TEST(MissRatioCurve, never_rises_and_sizes_do) {
  MissRatioCurve curve;
  curve.add(10, 0.5);
  curve.add(10, 0.1);
  curve.add(5, 0.1);
  curve.add(20, 0.7);
  EXPECT_EQ(curve.points().size(), 3u);
  EXPECT_DOUBLE_EQ(curve.at(20), 0.5);
}

}  // namespace
}  // namespace spw::locality
