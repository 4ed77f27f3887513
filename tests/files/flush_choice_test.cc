#include "files/flush_choice.h"

#include <gtest/gtest.h>

namespace spw::files {
namespace {

using Way = FlushChoice::Way;
constexpr uint64_t kStepNs = FlushChoice::kGapNs / 20;

// A program under pressure: so many blocks a second are written while each way is in use.
struct Program {
  uint64_t direct_per_s = 0, background_per_s = 0;
  uint64_t background_dirties_per_s = 0;  // of these, ones that stay dirty
  FlushChoice choice{};
  uint64_t now_ns = 1;
  double written = 0, dirty = 1000;
  unsigned changes = 0;

  void run_for(uint64_t ns) {
    for (const uint64_t end_ns = now_ns + ns; now_ns < end_ns; now_ns += kStepNs) {
      const bool is_direct = choice.way() == Way::kDirect;
      const double seconds = static_cast<double>(kStepNs) / FlushChoice::kSecondNs;
      written += seconds * static_cast<double>(is_direct ? direct_per_s : background_per_s);
      if (!is_direct) dirty += seconds * static_cast<double>(background_dirties_per_s);
      changes += choice.look(now_ns, [&] {
        return FlushChoice::Figures{static_cast<uint64_t>(written), static_cast<uint64_t>(dirty)};
      });
    }
  }
};

constexpr uint64_t kTrialNs = 2 * (FlushChoice::kSettleNs + FlushChoice::kMeasureNs) + FlushChoice::kSecondNs;

TEST(FlushChoice, takes_what_gets_more_written) {
  Program slower{.direct_per_s = 100'000, .background_per_s = 50'000};
  slower.run_for(kTrialNs);
  EXPECT_EQ(slower.choice.way(), Way::kDirect);
  EXPECT_EQ(slower.changes, 2U) << "there and back";
  Program faster{.direct_per_s = 50'000, .background_per_s = 100'000};
  faster.run_for(kTrialNs);
  EXPECT_EQ(faster.choice.way(), Way::kBackground);
  EXPECT_EQ(faster.changes, 1U);
}

TEST(FlushChoice, keeps_direct_flush_where_both_are_alike) {
  Program program{.direct_per_s = 100'000, .background_per_s = 103'000};
  program.run_for(kTrialNs);
  EXPECT_EQ(program.choice.way(), Way::kDirect);
}

TEST(FlushChoice, does_not_count_what_is_still_to_be_written) {
  Program program{.direct_per_s = 100'000, .background_per_s = 150'000, .background_dirties_per_s = 60'000};
  program.run_for(kTrialNs);
  EXPECT_EQ(program.choice.way(), Way::kDirect);
}

TEST(FlushChoice, tries_again_after_a_while) {
  Program program{.direct_per_s = 50'000, .background_per_s = 100'000};
  program.run_for(kTrialNs);
  ASSERT_EQ(program.choice.way(), Way::kBackground);
  program.background_per_s = 20'000;
  program.run_for(FlushChoice::kKeepNs + kTrialNs);
  EXPECT_EQ(program.choice.way(), Way::kDirect);
}

TEST(FlushChoice, a_trial_begins_anew_after_a_time_without_pressure) {
  Program program{.direct_per_s = 50'000, .background_per_s = 100'000};
  program.run_for(FlushChoice::kSettleNs + FlushChoice::kMeasureNs + FlushChoice::kSecondNs / 2);
  ASSERT_EQ(program.choice.way(), Way::kBackground) << "in the middle of the trial";
  program.now_ns += 100 * FlushChoice::kSecondNs;  // nothing was written: each way would seem slow
  program.run_for(2 * kStepNs);
  EXPECT_EQ(program.choice.way(), Way::kDirect);
  program.run_for(kTrialNs);
  EXPECT_EQ(program.choice.way(), Way::kBackground);
}

TEST(FlushChoice, a_choice_outlasts_a_time_without_pressure) {
  Program program{.direct_per_s = 50'000, .background_per_s = 100'000};
  program.run_for(kTrialNs);
  program.now_ns += FlushChoice::kKeepNs / 2;
  program.run_for(2 * kStepNs);
  EXPECT_EQ(program.choice.way(), Way::kBackground);
}

}  // namespace
}  // namespace spw::files
