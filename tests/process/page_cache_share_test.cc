#include "process/page_cache_share.h"

#include <gtest/gtest.h>

namespace spw::process {
namespace {

constexpr uint64_t kCap = 1 << 30, kLeast = kCap / ShareRule::kShareMin, kMs = 1'000'000;

// The share after so many steps in which each side brings in so much every time; both use all they may.
uint64_t after(ShareRule& rule, unsigned steps, uint64_t mapped_a_step, uint64_t framed_a_step) {
  uint64_t share = kCap / 2;
  ShareRule::Side mappings{share, 0}, frames{kCap - share, 0};
  for (unsigned i = 0; i < steps; ++i) {
    share = rule.next(kCap, mappings, frames, true, i * 21 * kMs);
    mappings = {share, mappings.brought_bytes + mapped_a_step};
    frames = {kCap - share, frames.brought_bytes + framed_a_step};
  }
  return share;
}

TEST(ShareRule, mappings_may_have_everything_while_there_is_nothing_else) {
  ShareRule rule;
  EXPECT_GT(rule.next(kCap, {kCap / 2, 0}, {0, 0}, false, 0), kCap / 2);
  EXPECT_EQ(rule.next(kCap, {kCap, 0}, {0, 0}, false, 0), kCap);
  EXPECT_FALSE(rule.is_pressed());
}

TEST(ShareRule, frames_that_can_evict_are_left_their_least_share) {
  ShareRule rule;
  EXPECT_EQ(rule.next(kCap, {kCap, 0}, {0, 0}, true, 0), kCap - kLeast);
}

TEST(ShareRule, both_may_grow_into_what_is_free) {
  ShareRule rule;
  const uint64_t share = rule.next(kCap, {kCap / 4, 0}, {kCap / 4, 0}, true, 0);
  EXPECT_GT(share, kCap / 4);
  EXPECT_GT(kCap - share, kCap / 4);
  EXPECT_FALSE(rule.is_pressed());
}

TEST(ShareRule, who_brings_in_more_of_what_it_holds_gets_more) {
  ShareRule more_mapped, more_framed;
  EXPECT_GT(after(more_mapped, 30, 4 << 20, 1 << 20), kCap / 2 + kCap / 16);
  EXPECT_LT(after(more_framed, 30, 1 << 20, 4 << 20), kCap / 2 - kCap / 16);
}

TEST(ShareRule, it_ends_where_ages_are_equal) {
  ShareRule rule;
  const uint64_t share = after(rule, 200, 3 << 20, 1 << 20);
  EXPECT_NEAR(static_cast<double>(share), kCap * 0.75, kCap / 16.0);
}

TEST(ShareRule, nobody_loses_all) {
  ShareRule rule, other;
  EXPECT_EQ(after(rule, 300, 0, 1 << 20), kLeast);
  EXPECT_EQ(after(other, 300, 1 << 20, 0), kCap - kLeast);
}

TEST(ShareRule, where_nothing_comes_nothing_moves) {
  ShareRule rule;
  const uint64_t share = after(rule, 3, 1 << 20, 1 << 20);
  const ShareRule::Side mappings{share, 3 << 20}, frames{kCap - share, 3 << 20};
  const uint64_t last = rule.next(kCap, mappings, frames, true, 500 * kMs);
  for (unsigned i = 1; i < 10; ++i)
    EXPECT_EQ(rule.next(kCap, mappings, frames, true, (500 + i * 100) * kMs), last);
}

TEST(ShareRule, an_estimate_that_falls_is_not_much_that_came) {
  ShareRule rule;
  const uint64_t share = after(rule, 3, 2 << 20, 1 << 20);
  const ShareRule::Side mappings{share, 1 << 20}, frames{kCap - share, 4 << 20};
  EXPECT_LT(rule.next(kCap, mappings, frames, true, 500 * kMs), share);
}

}  // namespace
}  // namespace spw::process
