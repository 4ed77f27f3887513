#include "lab/locality/bursts.h"

#include <gtest/gtest.h>

#include "lab/locality/stack_distances.h"
#include "lab/locality/whole_trace.h"
#include "lab/policies/traces.h"

namespace spw::lab {
namespace {

TEST(BurstSampler, watches_bursts_and_sleeps_between_them) {
  BurstSampler sampler(10, 90);
  int awake = 0;
  for (int i = 0; i < 1000; ++i) {
    awake += sampler.is_awake();
    sampler.access(static_cast<Datum>(i % 3));
  }
  EXPECT_EQ(awake, 100);
  EXPECT_EQ(sampler.bursts(), 10u);
}

TEST(BurstSampler, one_burst_may_be_all) {
  BurstSampler sampler(10, BurstSampler::kNeverAgain);
  for (int i = 0; i < 1000; ++i) sampler.access(static_cast<Datum>(i));
  EXPECT_EQ(sampler.bursts(), 1u);
  EXPECT_FALSE(sampler.is_awake());
}

TEST(BurstSampler, a_tenth_of_a_steady_stream_tells_its_curve) {
  const NamedTrace trace = zipf(2'000'000, 20'000, 0.9, 1);
  BurstSampler sampler(50'000, 450'000);
  for (const Datum datum : trace.blocks) sampler.access(datum);
  EXPECT_EQ(sampler.bursts(), 4u);
  const MissRatioCurve curve = sampler.curve();
  EXPECT_LE(mean_error(curve, exact_curve(trace.blocks), curve.largest_size()), 0.02);
}

TEST(BurstSampler, before_its_first_burst_ends_it_tells_what_it_has_seen) {
  BurstSampler sampler(1'000'000, 0);
  for (int i = 0; i < 10'000; ++i) sampler.access(static_cast<Datum>(i % 100));
  EXPECT_NEAR(sampler.curve().at(100), 0, 0.02);
  EXPECT_NEAR(sampler.curve().at(90), 1, 0.02);
}

}  // namespace
}  // namespace spw::lab
