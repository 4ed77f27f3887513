#include "top/graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "top/canvas.h"

namespace spw::tool::top {
namespace {

using Texts = std::vector<std::string>;
const double kNone = std::nan("");

TEST(Bar, is_as_full_as_the_share) {
  EXPECT_EQ(bar(0.5, 10, Charset::kAscii), "#####     ");
  EXPECT_EQ(bar(0.55, 10, Charset::kUtf8), "█████▌    ");
  EXPECT_EQ(bar(0, 3, Charset::kUtf8), "   ");
  EXPECT_EQ(bar(7, 3, Charset::kUtf8), "███");
  EXPECT_EQ(bar(-1, 3, Charset::kAscii), "   ");
  EXPECT_EQ(bar(kNone, 3, Charset::kAscii), "   ");
  EXPECT_EQ(bar(0.5, 0, Charset::kUtf8), "");
}

TEST(Graph, of_one_line_has_eight_heights) {
  const double values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(graph(values, 9, 1, 8, Charset::kUtf8), Texts{" ▁▂▃▄▅▆▇█"});
  EXPECT_EQ(graph(values, 9, 1, 8, Charset::kAscii), Texts{" ._-=+*%#"});
}

TEST(Graph, of_several_lines_grows_from_the_lowest) {
  const double values[] = {0, 4, 8, 12, 16};
  EXPECT_EQ(graph(values, 5, 2, 16, Charset::kUtf8), (Texts{"   ▄█", " ▄███"}));
}

TEST(Graph, has_the_newest_at_the_right) {
  const double values[] = {8, 8, 8, 1, 8};
  EXPECT_EQ(graph(values, 2, 1, 8, Charset::kUtf8), Texts{"▁█"}) << "the last two";
  EXPECT_EQ(graph(values, 7, 1, 8, Charset::kUtf8), Texts{"  ███▁█"}) << "blank before the first";
}

TEST(Graph, shows_little_as_something_and_no_number_as_nothing) {
  const double values[] = {1e-9, kNone, -3, 1e9, std::numeric_limits<double>::infinity()};
  EXPECT_EQ(graph(values, 5, 1, 8, Charset::kUtf8), Texts{"▁  █ "});
  EXPECT_EQ(graph(values, 5, 1, 0, Charset::kUtf8), Texts{"     "});
}

TEST(Graph, is_of_the_size_asked_for_whatever_there_is) {
  const std::vector<double> values(50, 3);
  for (const size_t count : {0, 1, 5, 50})
    for (const int columns : {0, 1, 7, 60})
      for (const int lines : {0, 1, 3}) {
        const Texts texts = graph(std::span(values).first(count), columns, lines, 4, Charset::kUtf8);
        ASSERT_EQ(texts.size(), static_cast<size_t>(lines));
        for (const std::string& text : texts) ASSERT_EQ(columns_of(text), columns);
      }
}

TEST(Tops, are_round_and_not_below) {
  EXPECT_EQ(round_top(0), 1);
  EXPECT_EQ(round_top(kNone), 1);
  EXPECT_DOUBLE_EQ(round_top(3), 5);
  EXPECT_DOUBLE_EQ(round_top(5), 5);
  EXPECT_DOUBLE_EQ(round_top(5.1), 10);
  EXPECT_DOUBLE_EQ(round_top(0.013), 0.02);
  for (double value = 1e-6; value < 1e15; value *= 1.37) {
    EXPECT_GE(round_top(value), value * (1 - 1e-6));
    EXPECT_LE(round_top(value), value * 2.51);
  }
  EXPECT_EQ(round_top_bytes(0), 1);
  EXPECT_EQ(round_top_bytes(33), 64);
  EXPECT_EQ(round_top_bytes(64), 64);
}

TEST(Divide, gives_all_their_share_and_small_ones_something) {
  const double halves[] = {0.25, 0.25, 0.5};
  EXPECT_EQ(divide(halves, 20), (std::vector{5, 5, 10}));
  const double little[] = {0.001, 0.5};
  EXPECT_EQ(divide(little, 10), (std::vector{1, 4}));
  const double too_much[] = {0.8, 0.8, kNone};
  EXPECT_EQ(divide(too_much, 10), (std::vector{8, 2, 0}));
  for (int columns = 0; columns < 30; ++columns) {
    const double thirds[] = {1.0 / 3, 1.0 / 3, 1.0 / 3};
    const std::vector<int> parts = divide(thirds, columns);
    EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), 0), columns);
  }
}

}  // namespace
}  // namespace spw::tool::top
