// How many slots extents want: few for streams, more for what is used again, and fewer again after a while.
#include "cache/extents/slot_demand.h"

#include <gtest/gtest.h>

namespace spw::cache {
namespace {

constexpr uint32_t kLeast = SlotDemand::kLeast, kPatience = SlotDemand::kPatience;
constexpr uint32_t kManySlots = 1000;

void evict(SlotDemand& demand, uint32_t times, uint32_t missed = 0) {
  for (uint32_t i = 0; i < times; ++i) demand.note_eviction(missed);
}

TEST(SlotDemandTest, a_stream_wants_the_least_however_long_it_is) {
  SlotDemand demand;
  evict(demand, 10 * kPatience);
  EXPECT_EQ(demand.slots(), kLeast);
}

TEST(SlotDemandTest, each_extent_in_use_wants_one_more_until_it_is_not_and_a_while_longer) {
  SlotDemand demand;
  for (int i = 0; i < 3; ++i) demand.has_begun();
  EXPECT_EQ(demand.slots(), kLeast + 3);
  for (int i = 0; i < 3; ++i) demand.has_ended();
  EXPECT_EQ(demand.slots(), kLeast + 3);
  evict(demand, kPatience - 1);
  EXPECT_EQ(demand.slots(), kLeast + 3);
  evict(demand, 1);
  EXPECT_EQ(demand.slots(), kLeast + 2);
  evict(demand, 10 * kPatience);
  EXPECT_EQ(demand.slots(), kLeast);
}

TEST(SlotDemandTest, what_was_missed_soon_after_it_left_wants_one_more_each) {
  SlotDemand demand;
  evict(demand, 2, 3);
  EXPECT_EQ(demand.slots(), kLeast + 6);
  evict(demand, 2 * kPatience);
  EXPECT_EQ(demand.slots(), kLeast + 4);
}

TEST(SlotDemandTest, no_stream_is_admitted_while_more_is_wanted_than_there_may_be) {
  SlotDemand demand;
  EXPECT_TRUE(demand.admits_stream(kLeast));
  evict(demand, 1, 2);
  EXPECT_TRUE(demand.admits_stream(kManySlots));
  int refused = 0;
  while (!demand.admits_stream(kLeast)) ASSERT_LT(++refused, 1000) << "nobody is admitted ever again";
  EXPECT_GT(refused, 8);
}

TEST(SlotDemandTest, without_streams_only_what_is_in_use_is_wanted) {
  SlotDemand demand;
  evict(demand, 1, 6);
  demand.has_begun();
  for (int i = 0; i < 20; ++i) demand.note_idle();
  EXPECT_EQ(demand.slots(), 1u);
  demand.note_stream();
  EXPECT_EQ(demand.slots(), kLeast);
}

TEST(SlotDemandTest, many_misses_do_not_wrap) {
  SlotDemand demand;
  evict(demand, 10, UINT32_MAX);
  EXPECT_GT(demand.slots(), kManySlots);
}

}  // namespace
}  // namespace spw::cache
