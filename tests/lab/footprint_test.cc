#include "lab/locality/footprint.h"

#include <gtest/gtest.h>

#include "../locality/traces.h"
#include "lab/locality/reuse_sampler.h"
#include "lab/locality/whole_trace.h"

namespace spw::lab {
namespace {

// All data are in the sample.
Footprint footprint_of(locality::Trace trace) {
  ReuseSampler sampler(1, UINT64_MAX);
  for (const Datum datum : trace) sampler.access(datum);
  return sampler.footprint();
}

// Equation 5: two formulas with nothing in common.
TEST(Footprint, and_reuse_add_up_to_the_length_of_the_window) {
  Rng rng(4);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Datum> trace =
        locality::random_trace(rng, 1 + rng.below(GapHistogram::kExactMax), 1 + rng.below(40));
    const locality::TimescaleReuse reuse = timescale_reuse(trace);
    const Footprint footprint = footprint_of(trace);
    for (uint64_t k = 0; k <= trace.size(); ++k)
      ASSERT_NEAR(footprint.at(static_cast<double>(k)) + reuse.reuse(k), static_cast<double>(k), 1e-6) << k;
  }
}

TEST(Footprint, of_long_windows_is_right_to_a_hundredth) {
  Rng rng(5);
  const std::vector<Datum> trace = locality::random_trace(rng, 200'000, 30'000);
  const locality::TimescaleReuse reuse = timescale_reuse(trace);
  const Footprint footprint = footprint_of(trace);
  for (uint64_t k = 1; k < trace.size(); k += k / 3 + 1)
    ASSERT_NEAR(footprint.at(static_cast<double>(k)), reuse.footprint(k), 0.01 * reuse.footprint(k)) << k;
}

TEST(Footprint, leads_to_the_same_curve_as_reuse) {
  Rng rng(6);
  const std::vector<Datum> trace = locality::random_trace(rng, 100'000, 3000);
  EXPECT_LE(mean_error(footprint_of(trace).curve(), curve_of(timescale_reuse(trace)), 3000), 0.005);
}

}  // namespace
}  // namespace spw::lab
