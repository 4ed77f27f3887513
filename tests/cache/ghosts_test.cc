#include "cache/eviction/ghosts.h"

#include <gtest/gtest.h>

namespace spw::cache {
namespace {

// As many as one set holds, so none is forgotten but for its age.
constexpr uint32_t kCapacity = 8;

void leave(Ghosts& ghosts, uint64_t first, uint64_t count) {
  for (uint64_t block = first; block < first + count; ++block) ghosts.left(Ghosts::of(BlockId(block)));
}

TEST(Ghosts, nobody_is_remembered_at_first) {
  Ghosts ghosts(kCapacity);
  for (uint64_t block = 0; block < 100; ++block) EXPECT_FALSE(ghosts.came_back(Ghosts::of(BlockId(block))));
}

TEST(Ghosts, one_that_left_is_remembered_for_as_many_departures_as_the_capacity) {
  Ghosts ghosts(kCapacity);
  leave(ghosts, 0, kCapacity);
  EXPECT_TRUE(ghosts.came_back(Ghosts::of(BlockId(0)))) << "the last chance: its own and seven since";
  leave(ghosts, 100, 2);
  EXPECT_FALSE(ghosts.came_back(Ghosts::of(BlockId(1)))) << "eight since";
  EXPECT_TRUE(ghosts.came_back(Ghosts::of(BlockId(2))));
}

TEST(Ghosts, what_passes_elsewhere_makes_them_older) {
  Ghosts ghosts(kCapacity);
  leave(ghosts, 0, 2);
  ghosts.pass(kCapacity - 2);
  EXPECT_TRUE(ghosts.came_back(Ghosts::of(BlockId(0))));
  ghosts.pass(2);
  EXPECT_FALSE(ghosts.came_back(Ghosts::of(BlockId(1))));
}

TEST(Ghosts, a_room_that_was_rounded_up_to_sets_makes_none_live_longer) {
  Ghosts ghosts(3);
  leave(ghosts, 0, 4);
  EXPECT_FALSE(ghosts.came_back(Ghosts::of(BlockId(0))));
  EXPECT_TRUE(ghosts.came_back(Ghosts::of(BlockId(1))));
}

TEST(Ghosts, one_that_came_back_is_forgotten) {
  Ghosts ghosts(kCapacity);
  leave(ghosts, 7, 1);
  EXPECT_TRUE(ghosts.came_back(Ghosts::of(BlockId(7))));
  EXPECT_FALSE(ghosts.came_back(Ghosts::of(BlockId(7))));
}

TEST(Ghosts, one_that_left_again_counts_from_then) {
  Ghosts ghosts(kCapacity);
  leave(ghosts, 7, 1);
  leave(ghosts, 100, kCapacity);
  EXPECT_FALSE(ghosts.came_back(Ghosts::of(BlockId(7))));
  leave(ghosts, 7, 1);
  leave(ghosts, 200, kCapacity - 1);
  EXPECT_TRUE(ghosts.came_back(Ghosts::of(BlockId(7))));
}

// How blocks are dealt to sets: of half as many as there is room for, nearly all must find some.
TEST(Ghosts, runs_and_strides_of_blocks_spread_over_the_sets) {
  constexpr uint32_t kMany = 4096;
  for (uint64_t stride : {1, 2, 64, 512, 4096, 1 << 20}) {
    Ghosts ghosts(kMany);
    for (uint64_t i = 0; i < kMany / 2; ++i) ghosts.left(Ghosts::of(BlockId(i * stride)));
    uint32_t remembered = 0;
    for (uint64_t i = 0; i < kMany / 2; ++i) remembered += ghosts.came_back(Ghosts::of(BlockId(i * stride)));
    EXPECT_GE(remembered, kMany / 2 * 95 / 100) << "stride " << stride;
  }
}

}  // namespace
}  // namespace spw::cache
