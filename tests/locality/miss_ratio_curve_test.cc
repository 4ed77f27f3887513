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

TEST(MissRatioCurve, tells_the_size_for_a_miss_ratio) {
  MissRatioCurve curve;
  curve.add(10, 0.5);
  curve.add(20, 0.25);
  EXPECT_DOUBLE_EQ(curve.size_for(1), 0);
  EXPECT_DOUBLE_EQ(curve.size_for(0.75), 5);
  EXPECT_DOUBLE_EQ(curve.size_for(0.25), 20);
  EXPECT_LT(curve.size_for(0.2), 0);
}

TEST(MissRatioCurve, knees_are_where_steep_pieces_end_the_steepest_first) {
  MissRatioCurve curve;
  curve.add(100, 1);
  curve.add(104, 0.8);
  curve.add(300, 0.78);
  curve.add(306, 0.2);
  curve.add(1000, 0.19);
  const std::vector<MissRatioCurve::Knee> knees = curve.knees(1000, 5);
  ASSERT_EQ(knees.size(), 2u);
  EXPECT_NEAR(knees[0].size, 306, 5);
  EXPECT_NEAR(knees[0].drop, 0.58, 0.02);
  EXPECT_NEAR(knees[1].size, 104, 5);
  EXPECT_NEAR(knees[1].miss_ratio, 0.8, 0.02);
  EXPECT_EQ(curve.knees(1000, 1).size(), 1u);
}

TEST(MissRatioCurve, a_straight_line_has_no_knee) {
  MissRatioCurve curve;
  curve.add(1000, 0);
  EXPECT_TRUE(curve.knees(1000, 5).empty());
}

TEST(MissRatioCurve, the_mean_error_is_the_mean_distance) {
  MissRatioCurve a, b;
  a.add(1, 0.5);
  b.add(1, 0.25);
  EXPECT_DOUBLE_EQ(a.mean_error(b, 100), 0.25);
  EXPECT_DOUBLE_EQ(a.mean_error(a, 100), 0);
}

}  // namespace
}  // namespace spw::locality
