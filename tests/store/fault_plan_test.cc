#include "store/fault_plan.h"

#include <gtest/gtest.h>

namespace spw::store {
namespace {

TEST(FaultPlan, the_nth_request_of_its_kind_fails) {
  auto plan = FaultPlan::parse("read:2:EIO,write:1:ENOSPC:x2");
  ASSERT_TRUE(plan);
  EXPECT_EQ((*plan)->next(Op::kRead).error, 0);
  Fault write = (*plan)->next(Op::kWrite);
  EXPECT_EQ(write.error, ENOSPC);
  EXPECT_EQ(write.failures_left, 2u);
  Fault read = (*plan)->next(Op::kRead);
  EXPECT_EQ(read.error, EIO);
  EXPECT_GT(read.failures_left, kRetriesMax);
  EXPECT_EQ((*plan)->next(Op::kRead).error, 0);
  EXPECT_EQ((*plan)->requests(Op::kRead), 3u);
  EXPECT_EQ((*plan)->requests(Op::kWrite), 1u);
}

TEST(FaultPlan, a_plus_means_that_request_and_all_after_it_until_cleared) {
  FaultPlan plan;
  ASSERT_TRUE(plan.add("write:2+:ENOSPC"));
  EXPECT_EQ(plan.next(Op::kWrite).error, 0);
  EXPECT_EQ(plan.next(Op::kWrite).error, ENOSPC);
  EXPECT_EQ(plan.next(Op::kWrite).error, ENOSPC);
  plan.clear();
  EXPECT_EQ(plan.next(Op::kWrite).error, 0);
  EXPECT_EQ(plan.requests(Op::kWrite), 4u);
}

TEST(FaultPlan, short_counts_reads_and_writes_together) {
  FaultPlan plan;
  ASSERT_TRUE(plan.add("short:3"));
  EXPECT_FALSE(plan.next(Op::kRead).shorten);
  EXPECT_FALSE(plan.next(Op::kWrite).shorten);
  EXPECT_FALSE(plan.next(Op::kSync).shorten);
  EXPECT_TRUE(plan.next(Op::kRead).shorten);
  EXPECT_FALSE(plan.next(Op::kRead).shorten);
}

TEST(FaultPlan, delays_are_in_microseconds_and_go_with_errors) {
  FaultPlan plan;
  ASSERT_TRUE(plan.add("read:1+:delay:250,read:2:EAGAIN"));
  EXPECT_EQ(plan.next(Op::kRead).delay_ns, 250'000u);
  Fault both = plan.next(Op::kRead);
  EXPECT_EQ(both.delay_ns, 250'000u);
  EXPECT_EQ(both.error, EAGAIN);
}

TEST(FaultPlan, what_succeeds_may_be_wrong) {
  FaultPlan plan;
  ASSERT_TRUE(plan.add("read:2:flip,write:1+:elsewhere"));
  EXPECT_EQ(plan.next(Op::kRead).damage, Damage::kNone);
  const Fault second = plan.next(Op::kRead);
  EXPECT_EQ(second.damage, Damage::kFlip);
  EXPECT_EQ(second.error, 0);
  EXPECT_EQ(plan.next(Op::kWrite).damage, Damage::kElsewhere);
  EXPECT_EQ(plan.next(Op::kWrite).damage, Damage::kElsewhere);
}

TEST(FaultPlan, what_is_no_rule_is_refused_by_name) {
  for (const char* spec : {"read", "read:0:EIO", "read:x:EIO", "red:1:EIO", "read:1:EWHAT", "read:1:EIO:2",
                           "read:1:EIO:x0", "short:1:EIO", "read:1:delay:soon", "read:1:EIO,,", ":",
                           "read:-1:EIO", "read:1:none", "discard:1:flip", "read:1:flip:x2"}) {
    auto plan = FaultPlan::parse(spec);
    ASSERT_FALSE(plan) << spec;
    EXPECT_EQ(plan.status().error(), EINVAL);
    EXPECT_NE(plan.status().message().find("fault rule"), std::string::npos);
  }
}

}  // namespace
}  // namespace spw::store
