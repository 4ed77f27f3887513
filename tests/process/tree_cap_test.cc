#include "process/tree_cap.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "base/units.h"

namespace spw::process {
namespace {

constexpr uint64_t kCap = kGiB;
constexpr int64_t kStep = kCap / 64;
constexpr uint64_t kSecond = 1'000'000'000;

TreeMember member(uint64_t granted_mib, uint64_t held_mib, bool is_full, uint64_t age = kSecond) {
  return {static_cast<int64_t>(granted_mib * kMiB), held_mib * kMiB, age, is_full};
}
TreeOthers others(int64_t free_mib, unsigned members, bool want, uint64_t youngest = UINT64_MAX) {
  return {kCap, free_mib * static_cast<int64_t>(kMiB), members, want, youngest};
}

TEST(ShareChange, who_has_enough_and_is_alone_keeps_it) {
  EXPECT_EQ(share_change(member(1024, 100, false), others(0, 1, false)), 0);
  EXPECT_EQ(share_change(member(1024, 1000, true), others(0, 1, false)), 0);
}

TEST(ShareChange, who_needs_takes_of_what_is_free) {
  EXPECT_EQ(share_change(member(64, 60, true), others(512, 2, false)), static_cast<int64_t>(64 * kMiB));
  EXPECT_EQ(share_change(member(400, 390, true), others(512, 2, false)), static_cast<int64_t>(100 * kMiB));
  EXPECT_EQ(share_change(member(400, 390, true), others(3, 2, false)), static_cast<int64_t>(3 * kMiB));
  EXPECT_EQ(share_change(member(64, 264, false), others(512, 2, false)), static_cast<int64_t>(200 * kMiB));
}

TEST(ShareChange, who_has_too_much_gives_it_when_another_lacks) {
  EXPECT_EQ(share_change(member(900, 100, false), others(0, 2, true, 0)),
            -static_cast<int64_t>(800 * kMiB) + kStep);
  EXPECT_EQ(share_change(member(900, 100, false), others(-6, 2, false)),
            -static_cast<int64_t>(800 * kMiB) + kStep);
  EXPECT_EQ(share_change(member(900, 890, false), others(0, 2, true, 0)), 0);
}

TEST(ShareChange, where_all_need_older_pages_give_way) {
  EXPECT_EQ(share_change(member(900, 900, true, 2 * kSecond), others(0, 2, true, kSecond)), -kStep);
  EXPECT_EQ(share_change(member(900, 900, true, 100 * kSecond), others(0, 2, true, kSecond)), -8 * kStep);
  EXPECT_EQ(share_change(member(900, 900, true, kSecond), others(0, 2, true, kSecond)), 0);
  EXPECT_EQ(share_change(member(900, 900, true, kSecond), others(0, 2, true, 2 * kSecond)), 0);
}

TEST(ShareChange, a_half_of_an_equal_share_stays) {
  EXPECT_EQ(share_change(member(256, 256, true, 100 * kSecond), others(0, 2, true, kSecond)), 0);
}

TEST(ShareChange, the_oldest_does_not_take_what_was_given_to_others) {
  EXPECT_EQ(share_change(member(600, 600, true, 100 * kSecond), others(64, 2, true, kSecond)), -8 * kStep);
}

TEST(ShareChange, a_debt_is_paid_by_who_has_more_than_an_equal_share) {
  EXPECT_EQ(share_change(member(900, 900, true), others(-6, 2, false)), -static_cast<int64_t>(6 * kMiB));
  EXPECT_EQ(share_change(member(100, 100, true), others(-6, 2, false)), 0);
}

struct TreeCapTest : ::testing::Test {
  TreeCapTest() {
    const Status made = TreeCap::make_for_children(kCap);
    EXPECT_TRUE(made.is_ok()) << made.message();
  }
  ~TreeCapTest() override {
    ::close(::atoi(::getenv(kTreeVariable)));
    ::unsetenv(kTreeVariable);
  }
  static std::unique_ptr<TreeCap> join() {
    auto joined = TreeCap::join(kCap);
    EXPECT_TRUE(joined) << joined.status().message();
    return std::make_unique<TreeCap>(std::move(*joined));
  }
  uint64_t now_ns = kSecond;
  int64_t look(TreeCap& of, uint64_t held_mib, bool is_full) {
    return of.look(held_mib * kMiB, 0, is_full, now_ns += kSecond / 50);
  }
};

TEST_F(TreeCapTest, the_first_has_all_and_the_next_owes) {
  const auto first = join();
  EXPECT_EQ(first->granted(), static_cast<int64_t>(kCap));
  EXPECT_EQ(first->members(), 1u);
  const auto second = join();
  EXPECT_EQ(second->granted(), TreeCap::kLeastBytes);
  EXPECT_EQ(second->members(), 2u);
  EXPECT_EQ(second->free_bytes(), -TreeCap::kLeastBytes);
}

TEST_F(TreeCapTest, the_sum_keeps_to_the_cap_while_needs_change) {
  const auto first = join(), second = join();
  const auto sum = [&] { return first->granted() + second->granted() + first->free_bytes(); };
  for (int i = 0; i < 100; ++i) {
    const auto first_may = look(*first, 200, false), second_may = look(*second, 300, true);
    EXPECT_GE(first_may, static_cast<int64_t>(200 * kMiB));
    EXPECT_LE(second_may, second->granted());
    ASSERT_EQ(sum(), static_cast<int64_t>(kCap));
  }
  EXPECT_GE(second->granted(), static_cast<int64_t>(300 * kMiB));
  EXPECT_EQ(first->held_by_all(), 500 * kMiB);
}

TEST_F(TreeCapTest, what_is_given_is_free_once_it_is_not_held) {
  const auto first = join(), second = join();
  EXPECT_LT(look(*first, 1024, true), static_cast<int64_t>(kCap));
  EXPECT_EQ(first->granted(), static_cast<int64_t>(kCap));
  (void)look(*first, 1024, true);
  EXPECT_EQ(first->granted(), static_cast<int64_t>(kCap));
  (void)look(*first, 1000, true);
  EXPECT_LT(first->granted(), static_cast<int64_t>(kCap));
}

TEST_F(TreeCapTest, what_one_that_ended_had_is_free_again) {
  const auto first = join();
  {
    const auto second = join();
    for (int i = 0; i < 20; ++i) {
      (void)look(*first, 100, false);
      (void)look(*second, 500, true);
    }
    EXPECT_GT(second->granted(), static_cast<int64_t>(400 * kMiB));
  }
  for (int i = 0; i < 20; ++i) (void)look(*first, 1000, true);
  EXPECT_EQ(first->members(), 1u);
  EXPECT_EQ(first->granted() + first->free_bytes(), static_cast<int64_t>(kCap));
  const auto third = join();
  EXPECT_EQ(third->granted() + first->granted() + first->free_bytes(), static_cast<int64_t>(kCap));
}

TEST_F(TreeCapTest, a_child_that_is_killed_leaves_nothing) {
  const auto first = join();
  for (int i = 0; i < 20; ++i) (void)look(*first, 100, false);
  const pid_t child = fork();
  if (child == 0) {
    auto own = first->join_as_child();
    if (!own) _exit(1);
    own->begin(50 * kMiB);
    _exit(own->granted() >= static_cast<int64_t>(50 * kMiB) ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (int i = 0; i < 20; ++i) (void)look(*first, 100, true);
  EXPECT_EQ(first->members(), 1u);
  EXPECT_EQ(first->granted() + first->free_bytes(), static_cast<int64_t>(kCap));
}

TEST_F(TreeCapTest, many_members_have_a_slot_each) {
  std::vector<std::unique_ptr<TreeCap>> all;
  for (int i = 0; i < 40; ++i) all.push_back(join());
  EXPECT_EQ(all.back()->members(), 40u);
  int64_t sum = all[0]->free_bytes();
  for (const auto& one : all) sum += one->granted();
  EXPECT_EQ(sum, static_cast<int64_t>(kCap));
}

TEST_F(TreeCapTest, who_looks_on_sees_a_process_s_share) {
  const auto self = static_cast<uint64_t>(::getpid());
  auto outside = TreeCap::share_of(self);
  ASSERT_TRUE(outside) << outside.status().message();
  EXPECT_FALSE(outside->is_member);
  EXPECT_EQ(outside->cap_bytes, kCap);
  const auto first = join();
  (void)look(*first, 200, true);
  int to_child[2], from_child[2];
  ASSERT_EQ(::pipe(to_child) + ::pipe(from_child), 0);
  const pid_t child = fork();
  if (child == 0) {
    first->forked();
    auto own = first->join_as_child();
    if (!own) _exit(1);
    own->begin(50 * kMiB);
    char byte = 0;
    (void)!::write(from_child[1], &byte, 1);
    (void)!::read(to_child[0], &byte, 1);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(from_child[0], &byte, 1), 1);
  auto mine = TreeCap::share_of(self), its = TreeCap::share_of(static_cast<uint64_t>(child));
  ASSERT_TRUE(mine && its);
  EXPECT_TRUE(mine->is_member && its->is_member);
  EXPECT_EQ(mine->run, its->run);
  EXPECT_EQ(mine->held_bytes, 200 * kMiB);
  EXPECT_EQ(mine->granted_bytes, first->granted());
  EXPECT_EQ(its->held_bytes, 50 * kMiB);
  EXPECT_GE(its->granted_bytes, static_cast<int64_t>(50 * kMiB));
  ASSERT_EQ(::write(to_child[1], &byte, 1), 1);
  ::waitpid(child, nullptr, 0);
}

TEST(TreeCap, who_is_in_no_run_has_no_share) {
  EXPECT_EQ(TreeCap::share_of(UINT32_MAX).status().error(), ENOENT);
  EXPECT_EQ(TreeCap::share_of(1).status().error(), ENOENT);
}

TEST(TreeCap, without_an_inherited_ledger_each_has_its_own) {
  ASSERT_EQ(::getenv(kTreeVariable), nullptr);
  auto first = TreeCap::join(kCap), second = TreeCap::join(kCap);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->granted() + second->granted(), static_cast<int64_t>(2 * kCap));
}

TEST(TreeCap, a_variable_that_names_something_else_is_passed_over) {
  for (const char* value : {"", "x", "0", "0:", "0:x", "0:1", "99999:1"}) {
    ::setenv(kTreeVariable, value, 1);
    TreeCap::keep_inherited();
    auto own = TreeCap::join(kCap);
    EXPECT_TRUE(own && own->granted() == static_cast<int64_t>(kCap)) << value;
  }
  ::unsetenv(kTreeVariable);
}

}  // namespace
}  // namespace spw::process
