#include "cache/fault_around.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "cache/partition_map.h"

namespace spw::cache {
namespace {

constexpr unsigned kShift = 12;
constexpr uint32_t kFrames = 8192;
constexpr uint64_t kBlocks = 100'000;

// Plays uses against a memory that evicts first in, first out.
class Player {
 public:
  explicit Player(uint32_t frames = kFrames) : units_(kShift, frames, kGroupBlocks), frames_(frames) {}
  void use(uint64_t block) {
    if (resident_.contains(block)) return;
    ++misses_;
    const FaultAround::Unit unit = units_.on_miss(BlockId(block));
    ASSERT_LE(unit.first.value, block);
    ASSERT_GT(unit.first.value + unit.count, block);
    ASSERT_EQ(unit.first.value % unit.count, 0u);
    for (uint64_t b = unit.first.value; b < unit.first.value + unit.count; ++b) bring(b);
  }
  // `count` runs of neighbours, so many each, at random aligned places from `from` on.
  void use_runs(uint64_t from, uint64_t blocks, uint64_t length, int count) {
    for (int i = 0; i < count; ++i) {
      const uint64_t first = from + rng_.below(blocks / length) * length;
      for (uint64_t b = first; b < first + length; ++b) use(b);
    }
  }
  uint64_t misses() const { return misses_; }
  uint64_t brought() const { return brought_; }
  unsigned level(uint64_t block) const { return units_.level_of(BlockId(block)); }

 private:
  void bring(uint64_t block) {
    if (!resident_.insert({block, true}).second) return;
    ++brought_;
    order_.push_back(block);
    if (order_.size() <= frames_) return;
    resident_.erase(order_.front());
    order_.pop_front();
  }
  FaultAround units_;
  const uint32_t frames_;
  Rng rng_{5};
  std::unordered_map<uint64_t, bool> resident_;
  std::deque<uint64_t> order_;
  uint64_t misses_ = 0, brought_ = 0;
};

TEST(FaultAround, a_sibling_has_to_be_wanted_the_more_often_the_larger_it_is) {
  EXPECT_NEAR(FaultAround::needed(4096), 0.36, 0.001);
  EXPECT_NEAR(FaultAround::needed(65536), 0.84, 0.001);
  for (uint64_t bytes = 4096; bytes < kMiB; bytes *= 2)
    EXPECT_LT(FaultAround::needed(bytes), FaultAround::needed(2 * bytes));
}

TEST(FaultAround, what_leaves_no_doubt_is_seen_early) {
  Player player;
  for (uint64_t b = 0; b < 15; ++b) player.use(b);
  EXPECT_EQ(player.level(0), 0u) << "seven pairs";
  for (uint64_t b = 15; b < 18; ++b) player.use(b);
  EXPECT_EQ(player.level(0), 1u) << "eight";
}

TEST(FaultAround, a_request_costs_the_more_the_fewer_wait) {
  FaultAround units(kShift, kFrames, kGroupBlocks);
  EXPECT_EQ(units.request_bytes(), FaultAround::kRequestBytes) << "before anybody has";
  for (int i = 0; i < 100; ++i) {
    units.begin_wait();
    units.end_wait();
  }
  EXPECT_EQ(units.request_bytes(), FaultAround::kRequestBytes + FaultAround::kWaitBytes);
  for (int i = 0; i < 7; ++i) units.begin_wait();
  for (int i = 0; i < 200; ++i) {
    units.begin_wait();
    units.end_wait();
  }
  EXPECT_NEAR(units.request_bytes(), FaultAround::kRequestBytes + FaultAround::kWaitBytes / 64, 512);
}

TEST(FaultAround, an_area_begins_with_what_the_one_before_it_has_learned) {
  constexpr uint64_t kArea = FaultAround::kAreaBytes >> kShift;
  Player player;
  for (uint64_t b = 0; b < kArea; ++b) player.use(b);
  const unsigned learned = player.level(0);
  ASSERT_GE(learned, 3u);
  EXPECT_EQ(player.level(kArea), 0u);
  player.use(kArea + 77);
  EXPECT_EQ(player.level(kArea), learned - 1);
}

TEST(FaultAround, single_blocks_at_random_places_stay_single) {
  Player player;
  player.use_runs(0, kBlocks, 1, 200'000);
  EXPECT_LE(player.brought(), player.misses() + player.misses() / 100);
}

TEST(FaultAround, a_scan_comes_in_the_largest_units) {
  Player player;
  for (int round = 0; round < 3; ++round)
    for (uint64_t b = 0; b < kBlocks; ++b) player.use(b);
  EXPECT_EQ(uint64_t{1} << player.level(0), FaultAround::kUnitBytesMax >> kShift);
  EXPECT_LE(player.misses(), 3 * kBlocks / 16);
}

TEST(FaultAround, runs_of_four_come_in_units_of_four) {
  Player player;
  player.use_runs(0, kBlocks, 4, 50'000);
  int fours = 0;
  for (uint64_t b = 0; b < kBlocks; b += FaultAround::kAreaBytes >> kShift) fours += player.level(b) == 2;
  EXPECT_GE(fours, 22);  // of 25 areas
  Player once_more;
  once_more.use_runs(0, kBlocks, 4, 20'000);
  const uint64_t misses = once_more.misses();
  once_more.use_runs(0, kBlocks, 4, 20'000);
  EXPECT_LE(once_more.misses() - misses, 24'000u);
}

TEST(FaultAround, they_shrink_again_when_what_comes_along_is_not_needed) {
  Player player;
  for (uint64_t b = 0; b < 20'000; ++b) player.use(b);
  EXPECT_GE(player.level(0), 4u);
  player.use_runs(0, 20'000, 1, 40'000);
  EXPECT_EQ(player.level(0), 0u);
}

TEST(FaultAround, areas_learn_by_themselves) {
  Player player;
  constexpr uint64_t kHalf = 5 * (FaultAround::kAreaBytes >> kShift);
  for (int i = 0; i < 100; ++i) {
    player.use_runs(0, kHalf, 16, 100);
    player.use_runs(kHalf, kHalf, 1, 500);
  }
  EXPECT_GE(player.level(0), 3u);
  EXPECT_EQ(player.level(kHalf), 0u);
}

// Data a little larger than memory: much of what is missed was there a while ago.
TEST(FaultAround, where_most_of_the_data_is_there_units_do_not_run_away) {
  constexpr uint64_t kData = kFrames + kFrames * 3 / 10;
  Player fours;
  fours.use_runs(0, kData, 4, 50'000);
  const uint64_t missed = fours.misses(), brought = fours.brought();
  fours.use_runs(0, kData, 4, 50'000);
  EXPECT_LE(static_cast<double>(fours.brought() - brought),
            4.5 * static_cast<double>(fours.misses() - missed));
  Player scanned;
  for (uint64_t b = 0; b < kData; ++b) scanned.use(b);
  EXPECT_GE(scanned.level(0), 3u);
  scanned.use_runs(0, kData, 1, 200'000);
  EXPECT_LE(scanned.level(0), 1u);
}

TEST(FaultAround, units_keep_to_the_most_that_they_are_allowed) {
  FaultAround none(kShift, kFrames, 1), two(kShift, kFrames, 3), large_blocks(21, kFrames, kGroupBlocks);
  for (uint64_t b = 0; b < 50'000; ++b) {
    ASSERT_EQ(none.on_miss(BlockId(b)).count, 1u);
    ASSERT_LE(two.on_miss(BlockId(b)).count, 2u);
    ASSERT_EQ(large_blocks.on_miss(BlockId(b)).count, 1u);
  }
  EXPECT_EQ(two.level_of(BlockId(0)), 1u);
}

TEST(FaultAround, threads_may_miss_at_once) {
  FaultAround units(kShift, kFrames, kGroupBlocks);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&units, t] {
      Rng rng(t + 1);
      for (int i = 0; i < 100'000; ++i) {
        const uint64_t block = i % 2 == 0 ? rng.below(kBlocks) : static_cast<uint64_t>(i) / 2;
        const FaultAround::Unit unit = units.on_miss(BlockId(block));
        ASSERT_LE(unit.first.value, block);
        ASSERT_GT(unit.first.value + unit.count, block);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace spw::cache
