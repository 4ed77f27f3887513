#include "access/mapped/hint_switch.h"

#include <gtest/gtest.h>

#include "access/mapped/hint_table.h"
#include "access/version_switch.h"
#include "base/units.h"

namespace spw::access {
namespace {

constexpr uint64_t kLookNs = 5'000'000;

class HintSwitchTest : public testing::Test {
 protected:
  HintSwitchTest() {
    EXPECT_TRUE(HintTable::create(12, kMiB).is_ok());
    access::VersionSwitch::set(false);
    switch_.look(now_ns_);
  }
  ~HintSwitchTest() override { access::VersionSwitch::set(false); }

  // A look after `trips` more.
  void look(int trips) {
    for (int i = 0; i < trips; ++i) switch_.note_trip();
    switch_.look(now_ns_ += kLookNs);
  }
  // A first trip, and nothing for a while.
  void find_not_worth_it() {
    look(1);
    for (int i = 0; i < 100; ++i) look(0);
    EXPECT_FALSE(access::VersionSwitch::is_set());
  }
  HintSwitch switch_;
  uint64_t now_ns_ = 1'000'000'000'000;
};

TEST_F(HintSwitchTest, is_on_from_the_first_trip) {
  EXPECT_FALSE(access::VersionSwitch::is_set());
  switch_.note_trip();
  EXPECT_TRUE(access::VersionSwitch::is_set());
}

TEST_F(HintSwitchTest, trips_before_the_first_look_leave_it_on) {
  HintSwitch fresh;
  fresh.note_trip();
  fresh.look(now_ns_);
  fresh.look(now_ns_ + kLookNs);
  EXPECT_TRUE(access::VersionSwitch::is_set());
}

TEST_F(HintSwitchTest, many_trips_switch_it_on_again) {
  find_not_worth_it();
  look(25);  // 5000 a second
  EXPECT_TRUE(access::VersionSwitch::is_set());
}

TEST_F(HintSwitchTest, a_few_trips_do_not) {
  find_not_worth_it();
  for (int i = 0; i < 100; ++i) look(5);
  EXPECT_FALSE(access::VersionSwitch::is_set());
}

TEST_F(HintSwitchTest, trips_over_a_long_time_do_not) {
  find_not_worth_it();
  now_ns_ += 1'000'000'000;
  look(100);
  EXPECT_FALSE(access::VersionSwitch::is_set());
}

TEST_F(HintSwitchTest, stays_on_while_there_are_many) {
  for (int i = 0; i < 100; ++i) {
    look(15);
    EXPECT_TRUE(access::VersionSwitch::is_set());
  }
}

TEST_F(HintSwitchTest, goes_off_after_a_while_with_few) {
  look(25);
  int looks = 0;
  while (access::VersionSwitch::is_set() && looks < 1000) {
    look(3);
    ++looks;
  }
  EXPECT_GT(looks, 5) << "one look is too short to tell";
  EXPECT_LT(looks, 100);
}

TEST_F(HintSwitchTest, a_burst_counts_for_a_while) {
  find_not_worth_it();
  look(1000);
  for (int i = 0; i < 10; ++i) {
    look(0);
    EXPECT_TRUE(access::VersionSwitch::is_set());
  }
}

}  // namespace
}  // namespace spw::access
