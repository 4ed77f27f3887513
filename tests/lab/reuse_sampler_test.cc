#include "lab/locality/reuse_sampler.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "lab/locality/stack_distances.h"
#include "lab/locality/whole_trace.h"
#include "lab/policies/traces.h"

namespace spw::lab {
namespace {

TEST(ReuseSampler, takes_its_share_of_the_data) {
  const ReuseSampler sampler(0.01);
  EXPECT_NEAR(sampler.rate(), 0.01, 1e-6);
  uint64_t sampled = 0;
  for (Datum datum = 0; datum < 1'000'000; ++datum) sampled += sampler.samples(datum);
  EXPECT_NEAR(static_cast<double>(sampled), 10'000, 500);
}

TEST(ReuseSampler, keeps_to_its_memory_and_to_the_curve_however_many_data_come) {
  const NamedTrace trace = zipf(2'000'000, 200'000, 0.9, 1);
  ReuseSampler sampler(1, 4000);
  for (const Datum datum : trace.blocks) sampler.access(datum);
  EXPECT_LE(sampler.sampled_data(), 4000u);
  EXPECT_GE(sampler.sampled_data(), 1000u);
  EXPECT_LT(sampler.memory_bytes(), 4000u * 64 + 200'000);
  EXPECT_EQ(sampler.accesses(), trace.blocks.size());
  const Footprint footprint = sampler.footprint();
  const MissRatioCurve exact = exact_curve(trace.blocks);
  EXPECT_NEAR(footprint.data(), exact.largest_size(), 0.1 * exact.largest_size());
  EXPECT_LE(mean_error(footprint.curve(), exact, exact.largest_size()), 0.02);
}

TEST(ReuseSampler, accesses_that_were_skipped_count) {
  ReuseSampler all(0.1), told(0.1);
  Rng rng(2);
  for (int i = 0; i < 100'000; ++i) {
    const Datum datum = rng.below(1000);
    all.access(datum);
    told.samples(datum) ? told.access(datum) : told.skip(1);
  }
  EXPECT_EQ(all.accesses(), told.accesses());
  EXPECT_DOUBLE_EQ(all.footprint().at(500), told.footprint().at(500));
}

}  // namespace
}  // namespace spw::lab
