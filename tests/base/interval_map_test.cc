#include "base/interval_map.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace spw {
namespace {

// Beside an array of values.
TEST(IntervalMap, holds_what_was_set_last) {
  constexpr uintptr_t kSize = 64;
  constexpr int kUsual = 3;
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    IntervalMap<int> map(kUsual);
    std::vector<int> expected(kSize, kUsual);
    for (int step = 0; step < 30; ++step) {
      const uintptr_t begin = rng.below(kSize), end = begin + rng.below(kSize - begin + 1);
      const int value = static_cast<int>(rng.below(4));
      if (rng.below(2) == 0) {
        map.set(begin, end, value);
        for (uintptr_t i = begin; i < end; ++i) expected[i] = value;
      } else {
        map.change(begin, end, [&](int was) { return was ^ value; });
        for (uintptr_t i = begin; i < end; ++i) expected[i] ^= value;
      }
      uintptr_t at = 0;
      ASSERT_TRUE(map.for_each(0, kSize, [&](uintptr_t from, uintptr_t to, int has) {
        EXPECT_EQ(from, at);
        for (; at < to; ++at) EXPECT_EQ(has, expected[at]);
        return true;
      }));
      ASSERT_EQ(at, kSize);
    }
    map.set(0, kSize, kUsual);
    EXPECT_TRUE(map.is_empty());
  }
}

TEST(IntervalMap, tells_how_far_a_value_reaches) {
  IntervalMap<int> map(0);
  map.set(10, 20, 1);
  uintptr_t end = 15;
  EXPECT_EQ(map.at(5, &end), 0);
  EXPECT_EQ(end, 10u);
  end = 15;
  EXPECT_EQ(map.at(12, &end), 1);
  EXPECT_EQ(end, 15u);
  end = 100;
  EXPECT_EQ(map.at(19, &end), 1);
  EXPECT_EQ(end, 20u);
  end = 100;
  EXPECT_EQ(map.at(20, &end), 0);
  EXPECT_EQ(end, 100u);
  EXPECT_FALSE(map.for_each(0, 30, [](uintptr_t, uintptr_t, int value) { return value == 0; }));
}

}  // namespace
}  // namespace spw
