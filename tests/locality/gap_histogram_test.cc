#include "locality/gap_histogram.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace spw::locality {
namespace {

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

}  // namespace
}  // namespace spw::locality
