#include "telemetry/closing_line.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace spw::telemetry {
namespace {

RunSummary some_run() {
  RunSummary run;
  run.totals = {13 * kGiB, 41 * kGiB, 3'100'000, 41'000'000'000, 59'000'000'000};
  run.wall_seconds = 90;
  run.peak_bytes = 4 * kGiB - 200 * kMiB;
  run.cap_bytes = 4 * kGiB;
  run.needs_bytes = 17 * kGiB;
  return run;
}

// So many blocks that all but `rest` of them are read no more with 2 GiB more.
std::vector<CurvePoint> falling_curve(uint64_t reads, uint64_t rest) {
  return {{4 * kGiB, reads}, {5 * kGiB, reads / 2 + rest / 2}, {6 * kGiB, rest}, {7 * kGiB, rest}};
}

TEST(ClosingLine, says_what_was_moved_held_and_missed) {
  EXPECT_EQ(closing_line(some_run()),
            "spilled 13.0 GiB, read 41.0 GiB; peak 3.8 of 4.0 GiB; 3.1 M misses, 41 % of the time waiting");
}

TEST(ClosingLine, a_run_that_fitted_has_no_figures) {
  RunSummary run;
  run.wall_seconds = 1;
  EXPECT_EQ(closing_line(run), "nothing had to leave memory");
}

TEST(ClosingLine, a_peak_in_another_unit_has_its_own) {
  RunSummary run = some_run();
  run.peak_bytes = 900 * kMiB;
  EXPECT_NE(closing_line(run).find("; peak 900.0 MiB of 4.0 GiB;"), std::string::npos) << closing_line(run);
  run.peak_bytes = 0;
  EXPECT_EQ(closing_line(run).find("peak"), std::string::npos);
}

TEST(ClosingLine, advice_is_given_as_memory_takes_it) {
  RunSummary run = some_run();
  run.advice = {6 * kGiB - 3 * kMiB, 0.6};
  EXPECT_TRUE(closing_line(run).ends_with("; try --memory 6200M: -60 %")) << closing_line(run);
  run.advice = {20 * kGiB + 1, 0.6};
  EXPECT_TRUE(closing_line(run).ends_with("; try --memory 21G: -60 %")) << closing_line(run);
  run.advice = {401 * kMiB, 0.6};
  EXPECT_TRUE(closing_line(run).ends_with("; try --memory 410M: -60 %")) << closing_line(run);
}

TEST(ClosingLine, a_run_that_would_not_have_fitted_is_told) {
  RunSummary run = some_run();
  run.machine_bytes = 16 * kGiB;
  EXPECT_TRUE(closing_line(run).ends_with(
      "; without Spillway it would have needed about 17.0 GiB, and 16.0 GiB is all there is"));
  run.machine_bytes = 18 * kGiB;
  EXPECT_EQ(closing_line(run).find("without"), std::string::npos);
}

TEST(ClosingLine, the_time_is_the_threads_or_the_clocks_if_that_is_more) {
  RunTotals totals;
  totals.waited_ns = 30'000'000'000;
  totals.processor_ns = 10'000'000'000;
  EXPECT_DOUBLE_EQ(waiting_share(totals, 20), 0.75);
  EXPECT_DOUBLE_EQ(waiting_share(totals, 60), 0.5);
  EXPECT_DOUBLE_EQ(waiting_share({}, 0), 0);
}

TEST(Advice, is_the_least_memory_that_saves_nearly_all) {
  const Advice advice = advice_from(falling_curve(1'000'000, 100'000), 0.5, 100 * kGiB);
  EXPECT_EQ(advice.memory_bytes, 6 * kGiB);
  EXPECT_NEAR(advice.saves, 0.45, 1e-9);
}

TEST(Advice, stays_within_what_the_machine_has) {
  const Advice advice = advice_from(falling_curve(1'000'000, 0), 0.5, 5 * kGiB);
  EXPECT_EQ(advice.memory_bytes, 5 * kGiB);
  EXPECT_NEAR(advice.saves, 0.25, 1e-9);
  EXPECT_EQ(advice_from(falling_curve(1'000'000, 0), 0.5, 4 * kGiB).memory_bytes, 0u);
}

TEST(Advice, is_not_given_where_it_is_worth_little_or_little_was_seen) {
  EXPECT_EQ(advice_from(falling_curve(1'000'000, 0), 0.05, 100 * kGiB).memory_bytes, 0u);
  EXPECT_EQ(advice_from(falling_curve(1'000, 0), 0.9, 100 * kGiB).memory_bytes, 0u);
  EXPECT_EQ(advice_from({}, 0.9, 100 * kGiB).memory_bytes, 0u);
}

}  // namespace
}  // namespace spw::telemetry
