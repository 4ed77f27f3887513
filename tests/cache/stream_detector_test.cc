#include "cache/partition/stream_detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>

#include "base/rng.h"

namespace spw::cache {
namespace {

// Plays accesses against a memory that holds what was planned: tells which accesses still missed.
class Player {
 public:
  // `plan_max`: no more blocks of a plan can be asked for.
  explicit Player(uint32_t window_max, uint32_t plan_max = UINT32_MAX)
      : detector_(window_max), plan_max_(plan_max) {}
  void use(uint64_t block) {
    ReadPlan plan = ahead_.contains(block) ? detector_.on_ahead_use(BlockId(block)) : miss(block);
    ahead_.erase(block);
    if (plan.count > plan_max_) {
      detector_.fell_short(plan, plan_max_);
      plan.count = plan_max_;
    }
    for (uint32_t i = 0; i < plan.count; ++i)
      ahead_.insert(plan.first.value + static_cast<uint64_t>(plan.stride) * i);
    planned_ += plan.count;
    last_ = plan;
  }
  uint64_t misses() const { return misses_; }
  uint64_t planned() const { return planned_; }
  ReadPlan last() const { return last_; }

 private:
  ReadPlan miss(uint64_t block) {
    ++misses_;
    return detector_.on_miss(BlockId(block));
  }
  StreamDetector detector_;
  const uint32_t plan_max_;
  std::set<uint64_t> ahead_;
  uint64_t misses_ = 0;
  uint64_t planned_ = 0;
  ReadPlan last_;
};

TEST(StreamDetector, a_sequential_stream_misses_twice) {
  Player player(64);
  for (uint64_t b = 1000; b < 3000; ++b) player.use(b);
  EXPECT_EQ(player.misses(), 2u);
}

TEST(StreamDetector, the_window_grows_to_its_maximum) {
  Player player(32);
  player.use(10);
  EXPECT_EQ(player.last().count, 0u);
  player.use(11);
  EXPECT_EQ(player.last().first, BlockId(12));
  EXPECT_EQ(player.last().count, 4u);
  uint32_t largest = 0;
  for (uint64_t b = 12; b < 300; ++b) {
    player.use(b);
    largest = std::max(largest, player.last().count);
  }
  EXPECT_EQ(largest, 32u);
}

TEST(StreamDetector, large_windows_end_where_a_group_ends) {
  for (bool forward : {true, false}) {
    StreamDetector detector(256);
    uint64_t edge = 0;
    for (uint64_t i = 0; i < 3000; ++i) {
      BlockId block(forward ? 10'007 + i : 10'007 - i);
      ReadPlan plan = i < 2 ? detector.on_miss(block) : detector.on_ahead_use(block);
      if (plan.count < 128) continue;
      uint64_t last = plan.first.value + static_cast<uint64_t>(plan.stride) * (plan.count - 1);
      EXPECT_EQ((forward ? last + 1 : last) % 64, 0u);
      ++edge;
    }
    EXPECT_GT(edge, 5u);
  }
}

TEST(StreamDetector, what_could_not_be_asked_for_is_asked_for_again) {
  Player player(64, 5);
  for (uint64_t block = 0; block < 1000; ++block) player.use(block);
  EXPECT_LE(player.misses(), 3u);
  Player never(64, 0);
  for (uint64_t block = 0; block < 100; ++block) never.use(block);
  EXPECT_EQ(never.misses(), 100u);
  EXPECT_EQ(never.planned(), 0u);
}

TEST(StreamDetector, backward_streams_are_followed_down_to_zero) {
  Player player(64);
  for (uint64_t b = 2000; b-- > 0;) player.use(b);
  EXPECT_EQ(player.misses(), 2u);
  EXPECT_LE(player.planned(), 2000u);
}

TEST(StreamDetector, strided_streams_are_followed_after_three_misses) {
  Player player(64);
  for (uint64_t b = 5000; b < 50'000; b += 17) player.use(b);
  EXPECT_EQ(player.misses(), 3u);
}

TEST(StreamDetector, small_strides_are_read_with_what_lies_in_between) {
  StreamDetector detector(64, 3);
  for (const uint64_t stride : {2u, 3u}) {
    const uint64_t first = 10'000 * stride;
    (void)detector.on_miss(BlockId(first));
    (void)detector.on_miss(BlockId(first + stride));
    const ReadPlan plan = detector.on_miss(BlockId(first + 2 * stride));
    EXPECT_EQ(plan.stride, 1);
    EXPECT_EQ(plan.first, BlockId(first + 2 * stride + 1));
    EXPECT_GT(plan.count, 0u);
  }
  (void)detector.on_miss(BlockId(50'008));
  (void)detector.on_miss(BlockId(50'004));
  EXPECT_EQ(detector.on_miss(BlockId(50'000)).stride, -4);
}

TEST(StreamDetector, a_small_stride_goes_on_by_its_own_uses) {
  StreamDetector detector(64, 3);
  uint64_t planned_to = 0;
  for (uint64_t b = 100; b < 2000; b += 2) {
    const ReadPlan plan = b <= planned_to ? detector.on_ahead_use(BlockId(b)) : detector.on_miss(BlockId(b));
    if (b > 104) EXPECT_LE(b, planned_to) << "a miss";
    if (plan.count > 0) planned_to = plan.first.value + plan.count - 1;
  }
}

TEST(StreamDetector, says_what_of_its_plans_a_stream_has_skipped) {
  StreamDetector detector(64);
  (void)detector.on_miss(BlockId(100));
  ASSERT_EQ(detector.on_miss(BlockId(101)).count, 4u);  // 102 to 105
  EXPECT_EQ(detector.on_ahead_use(BlockId(102)).skipped, 0u);
  const ReadPlan plan = detector.on_ahead_use(BlockId(105));  // half of the window is used: more is asked for
  EXPECT_EQ(plan.skipped_first, BlockId(103));
  EXPECT_EQ(plan.skipped, 2u);
  EXPECT_GT(plan.count, 0u);
}

TEST(StreamDetector, what_was_never_asked_for_or_is_used_by_a_run_is_not_skipped) {
  StreamDetector detector(64);
  (void)detector.on_miss(BlockId(100));
  ASSERT_EQ(detector.on_miss(BlockId(101)).count, 4u);
  EXPECT_EQ(detector.on_ahead_use(BlockId(104), 3).skipped, 0u);
  const ReadPlan plan = detector.on_miss(BlockId(120));  // beyond 117, to which was asked for
  EXPECT_LE(plan.skipped_first.value + plan.skipped, 118u);
}

TEST(StreamDetector, several_streams_at_once) {
  Player player(64);
  for (uint64_t i = 0; i < 1000; ++i)
    for (uint64_t stream = 0; stream < 6; ++stream) player.use(stream * 1'000'000 + i);
  EXPECT_EQ(player.misses(), 12u);
}

TEST(StreamDetector, random_misses_plan_next_to_nothing) {
  Player player(64);
  Rng rng(7);
  for (int i = 0; i < 100'000; ++i) player.use(rng.below(1 << 20));
  EXPECT_LT(player.planned(), 100'000u / 100);
}

// Two neighbouring blocks each, as of a B-tree's pages in a heap.
TEST(StreamDetector, objects_of_two_blocks_at_random_soon_plan_next_to_nothing) {
  Player player(256);
  Rng rng(5);
  constexpr uint64_t kObjects = 20'000;
  for (uint64_t i = 0; i < kObjects; ++i) {
    const uint64_t block = 2 * rng.below(1 << 20);
    player.use(block);
    player.use(block + 1);
  }
  EXPECT_LT(player.planned(), kObjects / 50);
  // A stream that comes then is still found, and the next ones as soon as ever.
  for (uint64_t stream = 0; stream < 10; ++stream) {
    const uint64_t missed = player.misses();
    for (uint64_t b = 0; b < 500; ++b) player.use((stream + 5) * 10'000'000 + b);
    EXPECT_LE(player.misses() - missed, stream == 9 ? 2u : 8u) << stream;
  }
}

// Of 15 KiB each: three steps of four blocks and one of three.
TEST(StreamDetector, spacings_that_are_no_whole_blocks_soon_plan_next_to_nothing) {
  Player player(256);
  constexpr uint64_t kObjects = 20'000;
  for (uint64_t i = 0; i < kObjects; ++i) player.use(1000 + i * 15 / 4);
  EXPECT_LT(player.planned(), kObjects / 10);
  const uint64_t missed = player.misses();
  for (uint64_t i = 0; i < 500; ++i) player.use(10'000'000 + i * 5);
  EXPECT_LE(player.misses() - missed, 10u);
}

// Each within the reach of the last window, and far behind its end.
TEST(StreamDetector, misses_far_behind_a_window_do_not_keep_it_up) {
  Player player(256);
  Rng rng(6);
  uint64_t block = 0;
  for (; block < 2000; ++block) player.use(block);
  const uint64_t planned = player.planned(), missed = player.misses();
  for (int i = 0; i < 200; ++i) player.use(block += 280 + rng.below(100));
  EXPECT_GT(player.misses() - missed, 100u);
  EXPECT_LT(player.planned() - planned, 4000u);
}

TEST(StreamDetector, repeated_misses_of_one_block_are_no_stream) {
  Player player(64);
  for (int i = 0; i < 100; ++i) player.use(5);
  EXPECT_EQ(player.planned(), 0u);
}

TEST(StreamDetector, a_miss_inside_what_was_read_ahead_shrinks_the_window) {
  StreamDetector detector(64);
  uint64_t block = 100;
  uint32_t window = 0;
  for (; block < 400; ++block) {
    ReadPlan plan = block < 102 ? detector.on_miss(BlockId(block)) : detector.on_ahead_use(BlockId(block));
    if (plan.count) window = plan.count;
  }
  ASSERT_EQ(window, 64u);
  ReadPlan plan = detector.on_miss(BlockId(block));
  EXPECT_GT(plan.count, 0u);
  EXPECT_LT(plan.count, 64u);
}

TEST(StreamDetector, a_maximum_of_zero_turns_it_off) {
  Player player(0);
  for (uint64_t b = 0; b < 100; ++b) player.use(b);
  EXPECT_EQ(player.planned(), 0u);
}

TEST(StreamDetector, what_fell_short_is_asked_for_again_in_pieces_not_block_by_block) {
  StreamDetector detector(64);
  detector.on_miss(BlockId(100));
  uint64_t plans = 0, asked = 102;  // what comes next
  ReadPlan plan = detector.on_miss(BlockId(101));
  for (uint64_t block = 102; block < 2000; ++block) {
    if (plan.count > 0) {
      ++plans;
      ASSERT_EQ(plan.first, BlockId(asked));
      const uint64_t room = 64 - (asked - block);  // as many as were used may be asked for
      const auto done = static_cast<uint32_t>(std::min<uint64_t>(plan.count, room));
      if (done < plan.count) detector.fell_short(plan, done);
      asked += done;
    }
    ASSERT_GT(asked, block) << "nothing is left";
    plan = detector.on_ahead_use(BlockId(block));
  }
  EXPECT_LE(plans, 1900u / 8);
}

TEST(StreamDetector, blocks_that_are_used_together_count_one_by_one) {
  const auto uses_until_asked_again = [](uint32_t together) {
    StreamDetector detector(64);
    detector.on_miss(BlockId(100));
    uint64_t block = 102;
    for (ReadPlan plan = detector.on_miss(BlockId(101)); plan.count < 64;)
      plan = detector.on_ahead_use(BlockId(block++));
    ReadPlan plan;
    while (plan.count == 0) plan = detector.on_ahead_use(BlockId(block++));
    detector.fell_short(plan, plan.count / 2);
    const uint64_t last = block - 1;
    do {
      block += together;
      plan = detector.on_ahead_use(BlockId(block - 1), together);
    } while (plan.count == 0);
    return block - 1 - last;
  };
  const uint64_t alone = uses_until_asked_again(1);
  EXPECT_LE(uses_until_asked_again(8), alone + 8);
  EXPECT_GE(uses_until_asked_again(8), 8u);
}

TEST(StreamDetector, misses_that_bring_neighbours_along_are_a_stream_when_these_are_neighbours) {
  for (bool ascends : {true, false}) {
    StreamDetector detector(64);
    const uint64_t first = ascends ? 800 : 880, next = ascends ? 816 : 864;
    EXPECT_EQ(detector.on_miss({BlockId(first), BlockId(first + 15)}, BlockId(first + 3)).count, 0u);
    const ReadPlan plan = detector.on_miss({BlockId(next), BlockId(next + 15)}, BlockId(next + 9));
    EXPECT_EQ(plan.stride, ascends ? 1 : -1);
    EXPECT_EQ(plan.first, BlockId(ascends ? next + 16 : next - 1));
    EXPECT_EQ(plan.count, 16u);
  }
}

// Misses that bring pieces along, and what is planned at the last of them.
ReadPlan plan_of(std::initializer_list<std::array<uint64_t, 3>> misses) {
  StreamDetector detector(64);
  ReadPlan plan;
  for (const auto& [low, high, block] : misses)
    plan = detector.on_miss({BlockId(low), BlockId(high)}, BlockId(block));
  return plan;
}

TEST(StreamDetector, pieces_that_grow_during_a_walk_are_a_stream_of_neighbours) {
  const ReadPlan up = plan_of({{0, 3, 0}, {0, 7, 4}});
  EXPECT_EQ(up.stride, 1);
  EXPECT_EQ(up.first, BlockId(8));
  const ReadPlan down = plan_of({{1012, 1015, 1015}, {1008, 1015, 1011}});
  EXPECT_EQ(down.stride, -1);
  EXPECT_EQ(down.first, BlockId(1007));
}

TEST(StreamDetector, pieces_that_lie_apart_are_no_stream) {
  EXPECT_EQ(plan_of({{0, 63, 0}, {128, 191, 128}, {256, 319, 256}}).count, 0u);
  EXPECT_EQ(plan_of({{64, 79, 70}, {64, 79, 75}}).count, 0u);
}

TEST(StreamDetector, a_stream_that_misses_goes_on_behind_what_came_with_the_miss) {
  const ReadPlan plan = plan_of({{0, 0, 0}, {1, 1, 1}, {8, 15, 8}});
  EXPECT_EQ(plan.stride, 1);
  EXPECT_EQ(plan.first, BlockId(16));
}

}  // namespace
}  // namespace spw::cache
