#include "locality/compressed_share.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace spw::locality {
namespace {

constexpr CompressionCosts kTwofold = {.fits = 1,
                                       .kept_bytes = 1024,
                                       .compress_ns = 2000,
                                       .open_ns = 1000,
                                       .fault_ns = 3000,
                                       .device_ns = 80'000};

// What comes back is equally likely to need anything up to `bytes` more.
GapHistogram evenly_up_to(uint64_t bytes) {
  GapHistogram distances;
  for (uint64_t at = bytes / 1000; at <= bytes; at += bytes / 1000) distances.add(at, 64);
  return distances;
}

constexpr SharedMemory kFramesHaveAll = {.memory_bytes = kGiB, .frames_bytes = kGiB};

TEST(CompressedShare, what_compresses_and_is_used_at_random_gets_as_much_as_holds_it_all) {
  // 2 GiB in use: 512 MiB hold 2 GiB.
  EXPECT_EQ(best_pool_bytes(evenly_up_to(kGiB), kFramesHaveAll, kTwofold), kGiB / 2);
}

TEST(CompressedShare, what_does_not_compress_gets_none) {
  CompressionCosts costs = kTwofold;
  costs.fits = 0;
  EXPECT_EQ(best_pool_bytes(evenly_up_to(kGiB), kFramesHaveAll, costs), 0u);
  costs.fits = 0.02;
  EXPECT_EQ(best_pool_bytes(evenly_up_to(kGiB), kFramesHaveAll, costs), 0u);
}

TEST(CompressedShare, there_is_none_where_nothing_comes_back) {
  EXPECT_EQ(best_pool_bytes(GapHistogram(), kFramesHaveAll, kTwofold), 0u);
}

TEST(CompressedShare, what_comes_back_from_further_than_it_reaches_gets_none) {
  GapHistogram scan;
  scan.add(100 * kGiB, 1'000'000);
  EXPECT_EQ(best_pool_bytes(scan, kFramesHaveAll, kTwofold), 0u);
}

TEST(CompressedShare, a_device_as_fast_as_opening_a_page_is_worth_none) {
  CompressionCosts costs = kTwofold;
  costs.device_ns = costs.open_ns + costs.compress_ns;
  EXPECT_EQ(best_pool_bytes(evenly_up_to(kGiB), kFramesHaveAll, costs), 0u);
}

TEST(CompressedShare, a_share_that_is_there_stays_for_as_long_as_it_serves) {
  // Half of the memory is the pool's, from which all is served: it comes back from at most 1 GiB further than frames.
  const SharedMemory half = {.memory_bytes = kGiB, .frames_bytes = kGiB / 2};
  const GapHistogram distances = evenly_up_to(kGiB);
  const uint64_t best = best_pool_bytes(distances, half, kTwofold);
  EXPECT_GE(best, kGiB / 4);
  EXPECT_LT(misses_cost_ns(distances, half, kTwofold, best), misses_cost_ns(distances, half, kTwofold, 0));
}

TEST(CompressedShare, a_share_goes_where_frames_alone_would_hold_it_all) {
  const SharedMemory half = {.memory_bytes = kGiB, .frames_bytes = kGiB / 2};
  EXPECT_EQ(best_pool_bytes(evenly_up_to(kGiB / 2), half, kTwofold), 0u);
}

TEST(CompressedShare, misses_that_frames_would_have_served_are_counted) {
  const GapHistogram distances = evenly_up_to(kGiB);
  CompressionCosts costs = kTwofold;
  costs.open_ns = 0;
  costs.compress_ns = 0;
  costs.device_ns = 0;
  // A fault each, and half as many again that were within the frames.
  EXPECT_NEAR(misses_cost_ns(distances, kFramesHaveAll, costs, 0), 64'000 * 3000.0, 64'000 * 3.0);
  EXPECT_NEAR(misses_cost_ns(distances, kFramesHaveAll, costs, kGiB / 2), 96'000 * 3000.0, 96'000 * 40.0);
}

}  // namespace
}  // namespace spw::locality
