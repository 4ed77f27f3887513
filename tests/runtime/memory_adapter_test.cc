#include "runtime/memory_adapter.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace spw::runtime {
namespace {

constexpr uint32_t kFramesMax = 1 << 20;
constexpr uint64_t kFrame = 4096;
constexpr uint64_t kMachine = 16 * kGiB;  // so the reserve is 1 GiB

AdaptiveLimit rule() { return AdaptiveLimit(kFramesMax, kFrame, kMachine); }

// The limit after so many periods in which all three grow by the same every time.
uint32_t after(AdaptiveLimit& rule, unsigned periods, AdaptiveLimit::Sample from, AdaptiveLimit::Sample step,
               int64_t available_step, uint32_t limit) {
  for (unsigned i = 0; i < periods; ++i) {
    limit = rule.next(from, limit);
    from.used_frames += step.used_frames;
    from.misses += step.misses;
    from.available_bytes += static_cast<uint64_t>(available_step);
  }
  return limit;
}

TEST(AdaptiveLimit, a_quiet_program_keeps_its_limit) {
  auto r = rule();
  EXPECT_EQ(after(r, 20, {1000, 50'000, 8 * kGiB}, {}, 0, 300'000), 300'000u);
}

TEST(AdaptiveLimit, memory_that_others_took_is_given_back_at_once) {
  auto r = rule();
  // Half a GiB below the reserve: so much less than is in use.
  EXPECT_EQ(r.next({500'000, 0, kGiB / 2}, 600'000), 500'000u - (kGiB / 2) / kFrame);
}

TEST(AdaptiveLimit, memory_that_others_are_taking_is_given_back_before_it_lacks) {
  auto r = rule();
  // 256 MiB a period from 3 GiB on: the reserve is reached within ten periods.
  uint32_t limit = after(r, 3, {500'000, 0, 3 * kGiB}, {}, -256 * static_cast<int64_t>(kMiB), 600'000);
  EXPECT_LT(limit, 500'000u);
}

TEST(AdaptiveLimit, misses_without_free_frames_raise_the_limit_while_much_is_available) {
  auto r = rule();
  uint32_t limit = after(r, 4, {300'000, 0, 8 * kGiB}, {0, 20'000, 0}, 0, 300'000);
  EXPECT_GT(limit, 300'000u);
  EXPECT_LE(limit, kFramesMax);
}

TEST(AdaptiveLimit, growth_is_at_most_half_of_what_is_spare) {
  auto r = rule();
  (void)r.next({100'000, 0, kGiB + 400 * kMiB}, 100'000);
  uint32_t limit = r.next({100'000, 9'000, kGiB + 400 * kMiB}, 100'000);
  EXPECT_GT(limit, 100'000u);
  EXPECT_LE(limit - 100'000u, 200 * kMiB / kFrame);
}

TEST(AdaptiveLimit, small_changes_are_not_worth_it) {
  auto r = rule();
  EXPECT_EQ(r.next({500'000, 0, kGiB - kMiB}, 500'001), 500'001u);
}

TEST(AdaptiveLimit, the_limit_stays_within_its_bounds) {
  auto r = rule();
  EXPECT_EQ(r.next({100'000, 0, 0}, 100'000), kFramesMax / AdaptiveLimit::kLimitShareMin);
  auto other = rule();
  EXPECT_LE(after(other, 30, {900'000, 0, 64 * kGiB}, {0, 500'000, 0}, 0, 1'000'000), kFramesMax);
}

}  // namespace
}  // namespace spw::runtime
