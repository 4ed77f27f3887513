#include "locality/timescale_reuse.h"

#include <gtest/gtest.h>

#include <set>

#include "lab/locality/stack_distances.h"
#include "lab/locality/whole_trace.h"
#include "traces.h"

namespace spw::locality {
namespace {

using lab::timescale_reuse;

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
  EXPECT_DOUBLE_EQ(lab::curve_of(reuse).at(10), 1);
}

TEST(TimescaleReuse, of_small_sizes_puts_a_loops_drop_at_its_size) {
  std::vector<Datum> trace;
  for (int i = 0; i < 5000; ++i) trace.push_back(static_cast<Datum>(i % 25));
  for (const uint64_t scale_max : {uint64_t{26}, uint64_t{100}, UINT64_MAX}) {
    const MissRatioCurve curve = timescale_reuse(trace, scale_max).curve_of_small_sizes(50);
    EXPECT_NEAR(curve.at(24), 1, 1e-9) << scale_max;
    EXPECT_NEAR(curve.at(25), 0, 1e-9) << scale_max;
    EXPECT_EQ(curve.largest_size(), 50);
  }
}

TEST(TimescaleReuse, of_small_sizes_is_the_exact_curve_of_a_random_trace) {
  Rng rng(5);
  const std::vector<Datum> trace = random_trace(rng, 200'000, 60);
  const MissRatioCurve exact = lab::exact_curve(trace),
                       curve = timescale_reuse(trace, 2000).curve_of_small_sizes(50);
  for (int size = 1; size <= 50; ++size) EXPECT_NEAR(curve.at(size), exact.at(size), 0.02) << size;
}

TEST(TimescaleReuse, of_small_sizes_of_next_to_nothing) {
  for (const char* trace : {"", "a", "ab"})
    EXPECT_DOUBLE_EQ(timescale_reuse(trace_of(trace)).curve_of_small_sizes(50).at(50), 1) << trace;
}

std::vector<Datum> with_names_of_their_own(Trace trace, const std::vector<size_t>& ends) {
  std::vector<Datum> renamed;
  uint64_t section = 0;
  for (size_t i = 0; i < trace.size(); ++i) {
    while (section < ends.size() && ends[section] <= i) ++section;
    renamed.push_back(section << 32 | trace[i]);
  }
  return renamed;
}

// Failure-atomic sections: no reuse across an end, so each section's data get names of their own.
TEST(TimescaleReuse, of_renamed_sections_sees_no_reuse_between_them) {
  std::vector<Datum> trace;
  for (Datum section = 0; section < 100; ++section)
    for (const Datum line : {1u, 2u}) trace.push_back(section << 32 | line);
  EXPECT_DOUBLE_EQ(lab::curve_of(timescale_reuse(trace)).at(50), 1);
}

TEST(ReuseCollector, sections_are_as_if_renamed) {
  Rng rng(3);
  for (int round = 0; round < 100; ++round) {
    const std::vector<Datum> trace = random_trace(rng, 1 + rng.below(150), 1 + rng.below(30));
    const uint64_t scale_max = round % 3 == 0 ? trace.size() : 1 + rng.below(60);
    ReuseCollector collector(scale_max);
    std::vector<size_t> ends;
    for (size_t i = 0; i < trace.size(); ++i) {
      while (rng.below(20) == 0) {
        collector.end_section();
        ends.push_back(i);
      }
      collector.access(trace[i]);
    }
    const std::vector<Datum> renamed = with_names_of_their_own(trace, ends);
    const TimescaleReuse reuse = collector.finish();
    for (uint64_t k = 1; k <= reuse.scale_max(); ++k)
      ASSERT_NEAR(reuse.reuse(k), reuse_by_hand(renamed, k), 1e-9) << k;
    if (scale_max == trace.size())
      ASSERT_EQ(reuse.data(), std::set<Datum>(renamed.begin(), renamed.end()).size());
  }
}

TEST(ReuseCollector, memory_depends_on_the_scale_and_not_on_the_trace) {
  constexpr uint64_t kScale = 1024;
  for (const uint64_t section : {uint64_t{3}, uint64_t{500}, UINT64_MAX}) {
    ReuseCollector collector(kScale);
    for (uint64_t i = 0; i < 1'000'000; ++i) {
      if (i % section == 0) collector.end_section();
      collector.access(i);
    }
    EXPECT_LE(collector.memory_bytes(), kScale * (20 + 64)) << section;
  }
}

}  // namespace
}  // namespace spw::locality
