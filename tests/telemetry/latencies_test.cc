#include "telemetry/latencies.h"

#include <gtest/gtest.h>

#include <memory>

namespace spw::telemetry {
namespace {

TEST(LatenciesTest, each_time_is_below_the_end_of_its_class_by_an_eighth_at_most) {
  for (uint64_t ns = 256; ns < uint64_t{1} << kOctavesEnd; ns += ns / 7 + 1) {
    const uint64_t end = latency_class_end_ns(latency_class(ns));
    EXPECT_LT(ns, end) << ns;
    EXPECT_LE(end - ns, ns / 8 + 1) << ns;
  }
}

TEST(LatenciesTest, classes_follow_one_another_without_a_gap) {
  EXPECT_EQ(latency_class(0), 0u);
  EXPECT_EQ(latency_class(255), 0u);
  for (size_t i = 0; i + 2 < kClasses; ++i) {
    EXPECT_EQ(latency_class(latency_class_end_ns(i) - 1), i);
    EXPECT_EQ(latency_class(latency_class_end_ns(i)), i + 1);
  }
  EXPECT_EQ(latency_class(UINT64_MAX), kClasses - 1);
}

TEST(LatenciesTest, quantiles_are_of_all_that_were_added) {
  auto block = std::make_unique<LatencyBlock>();
  for (int i = 0; i < 990; ++i) block->add(10'000);
  for (int i = 0; i < 9; ++i) block->add(1'000'000);
  block->add(50'000'000);
  Latencies latencies;
  latencies.add(*block);
  EXPECT_EQ(latencies.count(), 1000u);
  EXPECT_NEAR(static_cast<double>(latencies.quantile_ns(0.5)), 10'000, 1'300);
  EXPECT_NEAR(static_cast<double>(latencies.quantile_ns(0.99)), 10'000, 1'300);
  EXPECT_NEAR(static_cast<double>(latencies.quantile_ns(0.999)), 1'000'000, 130'000);
  EXPECT_EQ(latencies.quantile_ns(1), 50'000'000u);
  EXPECT_EQ(latencies.worst_ns, 50'000'000u);
}

TEST(LatenciesTest, an_interval_has_what_came_in_it) {
  auto block = std::make_unique<LatencyBlock>();
  block->add(1000);
  Latencies before, now;
  before.add(*block);
  block->add(90'000);
  now.add(*block);
  const Latencies later = now.since(before);
  EXPECT_EQ(later.count(), 1u);
  EXPECT_GE(later.quantile_ns(0.5), 90'000u);
}

TEST(LatenciesTest, without_any_all_is_zero) {
  const LatencySummary none = summary_of({});
  EXPECT_EQ(none.count, 0u);
  EXPECT_EQ(none.p999_ns, 0u);
}

}  // namespace
}  // namespace spw::telemetry
