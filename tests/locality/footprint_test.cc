#include "locality/footprint.h"

#include <gtest/gtest.h>

#include "locality/reuse_sampler.h"
#include "locality/timescale_reuse.h"
#include "traces.h"

namespace spw::locality {
namespace {

// All data are in the sample.
Footprint footprint_of(Trace trace) {
  ReuseSampler sampler(1, UINT64_MAX);
  for (const Datum datum : trace) sampler.access(datum);
  return sampler.footprint();
}

TEST(GapHistogram, bins_cover_all_lengths_without_a_hole) {
  GapHistogram gaps;
  gaps.add(1'000'000'000'000);
  const std::vector<GapHistogram::Bin>& bins = gaps.bins();
  for (size_t bin = 1; bin < bins.size(); ++bin) {
    ASSERT_GT(bins[bin].first, bins[bin - 1].first);
    if (bins[bin - 1].first <= GapHistogram::kExactMax) {
      ASSERT_EQ(bins[bin].first, bins[bin - 1].first + 1);
    }
    ASSERT_LE(bins[bin].first - bins[bin - 1].first, 1 + bins[bin].first / 100);
  }
  EXPECT_LE(bins.back().first, 1'000'000'000'000u);
}

TEST(GapHistogram, a_length_is_in_the_bin_it_belongs_to) {
  Rng rng(3);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t gap = rng.next() >> (20 + rng.below(40));
    GapHistogram gaps;
    gaps.add(gap);
    ASSERT_EQ(gaps.bins().back().count, 1);
    ASSERT_LE(gaps.bins().back().first, gap);
    GapHistogram next;
    next.add(gaps.bins().back().first);
    ASSERT_EQ(next.bins().size(), gaps.bins().size());
  }
}

// Equation 5: two formulas with nothing in common.
TEST(Footprint, and_reuse_add_up_to_the_length_of_the_window) {
  Rng rng(4);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Datum> trace =
        random_trace(rng, 1 + rng.below(GapHistogram::kExactMax), 1 + rng.below(40));
    const TimescaleReuse reuse = timescale_reuse(trace);
    const Footprint footprint = footprint_of(trace);
    for (uint64_t k = 0; k <= trace.size(); ++k)
      ASSERT_NEAR(footprint.at(static_cast<double>(k)) + reuse.reuse(k), static_cast<double>(k), 1e-6) << k;
  }
}

TEST(Footprint, of_long_windows_is_right_to_a_hundredth) {
  Rng rng(5);
  const std::vector<Datum> trace = random_trace(rng, 200'000, 30'000);
  const TimescaleReuse reuse = timescale_reuse(trace);
  const Footprint footprint = footprint_of(trace);
  for (uint64_t k = 1; k < trace.size(); k += k / 3 + 1)
    ASSERT_NEAR(footprint.at(static_cast<double>(k)), reuse.footprint(k), 0.01 * reuse.footprint(k)) << k;
}

TEST(Footprint, leads_to_the_same_curve_as_reuse) {
  Rng rng(6);
  const std::vector<Datum> trace = random_trace(rng, 100'000, 3000);
  EXPECT_LE(footprint_of(trace).curve().mean_error(timescale_reuse(trace).curve(), 3000), 0.005);
}

}  // namespace
}  // namespace spw::locality
