#include "locality/timescale_reuse.h"

#include <gtest/gtest.h>

#include <set>

#include "traces.h"

namespace spw::locality {
namespace {

// By its definition: the accesses of each window that find their datum within it.
double reuse_by_hand(Trace trace, uint64_t k) {
  uint64_t reuses = 0;
  for (size_t first = 0; first + k <= trace.size(); ++first) {
    std::set<Datum> seen;
    for (size_t i = first; i < first + k; ++i) reuses += !seen.insert(trace[i]).second;
  }
  return static_cast<double>(reuses) / static_cast<double>(trace.size() - k + 1);
}

TEST(TimescaleReuse, of_the_papers_examples) {
  EXPECT_DOUBLE_EQ(timescale_reuse(trace_of("abb")).reuse(2), 0.5);
  const std::vector<Datum> ab = trace_of("abababababab");
  const TimescaleReuse reuse = timescale_reuse(ab);
  for (uint64_t k = 2; k <= ab.size(); ++k) EXPECT_DOUBLE_EQ(reuse.reuse(k), static_cast<double>(k - 2));
}

TEST(TimescaleReuse, of_an_interval_away_from_both_ends) {
  EXPECT_DOUBLE_EQ(timescale_reuse(trace_of("cabbac")).reuse(2), 0.2);
}

TEST(TimescaleReuse, is_the_mean_over_all_windows_for_every_length) {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Datum> trace = random_trace(rng, 1 + rng.below(60), 1 + rng.below(20));
    const TimescaleReuse reuse = timescale_reuse(trace);
    ASSERT_EQ(reuse.scale_max(), trace.size());
    for (uint64_t k = 1; k <= trace.size(); ++k)
      ASSERT_NEAR(reuse.reuse(k), reuse_by_hand(trace, k), 1e-9) << k;
  }
}

TEST(TimescaleReuse, of_short_windows_needs_no_long_ones) {
  Rng rng(2);
  for (int round = 0; round < 100; ++round) {
    const std::vector<Datum> trace = random_trace(rng, 1 + rng.below(500), 1 + rng.below(50));
    const TimescaleReuse all = timescale_reuse(trace), some = timescale_reuse(trace, 20);
    ASSERT_EQ(some.scale_max(), std::min<uint64_t>(trace.size(), 20));
    for (uint64_t k = 0; k <= some.scale_max(); ++k) ASSERT_DOUBLE_EQ(some.reuse(k), all.reuse(k));
  }
}

TEST(TimescaleReuse, of_nothing_is_nothing) {
  const TimescaleReuse reuse = timescale_reuse({});
  EXPECT_EQ(reuse.data(), 0u);
  EXPECT_EQ(reuse.scale_max(), 0u);
  EXPECT_DOUBLE_EQ(reuse.curve().at(10), 1);
}

TEST(TimescaleReuse, a_loop_misses_all_until_it_fits) {
  std::vector<Datum> trace;
  for (int i = 0; i < 5000; ++i) trace.push_back(static_cast<Datum>(i % 50));
  const MissRatioCurve curve = timescale_reuse(trace).curve();
  EXPECT_NEAR(curve.at(48), 1, 1e-9);
  EXPECT_NEAR(curve.at(50), 0.01, 1e-9) << "the first round misses";
}

// Failure-atomic sections: no reuse across an end, so each section's data get names of their own.
TEST(TimescaleReuse, of_renamed_sections_sees_no_reuse_between_them) {
  std::vector<Datum> trace;
  for (Datum section = 0; section < 100; ++section)
    for (const Datum line : {1u, 2u}) trace.push_back(section << 32 | line);
  EXPECT_DOUBLE_EQ(timescale_reuse(trace).curve().at(50), 1);
}

}  // namespace
}  // namespace spw::locality
