#include "durable/combining/size_choice.h"

#include <gtest/gtest.h>

#include <functional>

namespace spw::durable {
namespace {

uint32_t chosen(const std::function<double(int)>& miss_ratio, uint32_t size_max = 50) {
  locality::MissRatioCurve curve;
  for (int size = 1; size <= 50; ++size) curve.add(size, miss_ratio(size));
  return choose_size(curve, size_max);
}

TEST(ChooseSize, of_one_cliff_is_its_foot) {
  for (const int cliff : {2, 3, 10, 25, 49, 50})
    EXPECT_EQ(chosen([&](int size) { return size < cliff ? 1 : 0.01; }), static_cast<uint32_t>(cliff));
}

TEST(ChooseSize, a_cliff_low_down_counts_as_one_high_up) {
  EXPECT_EQ(chosen([](int size) { return size < 25 ? 0.0625 : 0.00003; }), 25u)
      << "15 of 16 writes repeat their line";
}

TEST(ChooseSize, of_several_knees_is_the_largest) {
  // Like figure 2 of the paper.
  EXPECT_EQ(chosen([](int size) {
              return size < 3 ? 0.9 : size < 8 ? 0.6 : size < 14 ? 0.4 : size < 23 ? 0.2 : 0.01;
            }),
            23u);
}

TEST(ChooseSize, only_the_top_few_are_candidates) {
  const double drops[] = {0.2, 0.19, 0.18, 0.17, 0.16, 0.05};  // at sizes 5, 10, ... 30
  EXPECT_EQ(chosen([&](int size) {
              double left = 1;
              for (int knee = 0; knee < 6; ++knee) left -= size >= 5 * (knee + 1) ? drops[knee] : 0;
              return left;
            }),
            25u);
}

TEST(ChooseSize, a_smeared_cliff_ends_where_it_is_flat_again) {
  EXPECT_EQ(chosen([](int size) { return size < 20   ? 1.0
                                         : size < 30 ? 1.0 - 0.09 * (size - 19)
                                                     : 0.1; }),
            29u);
  const double foot[] = {0.9, 0.5, 0.1, 0.05, 0.03, 0.02};
  EXPECT_EQ(chosen([&](int size) { return size < 10 ? 1.0 : foot[std::min(size - 10, 5)]; }), 15u);
}

TEST(ChooseSize, with_no_obvious_decrease_is_the_most) {
  EXPECT_EQ(chosen([](int) { return 1; }), 50u) << "nothing is combined";
  EXPECT_EQ(chosen([](int size) { return 1 - 0.02 * size; }), 50u) << "an even decline";
  EXPECT_EQ(chosen([](int size) { return size < 20 ? 1 : 0.98; }), 50u) << "a small step";
  EXPECT_EQ(choose_size(locality::MissRatioCurve(), 50), 50u);
}

TEST(ChooseSize, one_line_will_do_where_more_do_no_better) {
  EXPECT_EQ(chosen([](int) { return 0.0625; }), 1u);
  EXPECT_EQ(chosen([](int) { return 0; }), 1u);
  EXPECT_EQ(chosen([](int size) { return 0.0625 - 0.001 * size; }), 50u) << "more do better, evenly";
}

TEST(ChooseSize, is_never_above_what_is_allowed) {
  EXPECT_EQ(chosen([](int size) { return size < 25 ? 1 : 0; }, 24), 24u);
  EXPECT_EQ(chosen([](int size) { return size < 5 ? 1.0 : size < 25 ? 0.5 : 0.0; }, 24), 5u);
  EXPECT_EQ(chosen([](int) { return 1; }, 1), 1u);
}

}  // namespace
}  // namespace spw::durable
