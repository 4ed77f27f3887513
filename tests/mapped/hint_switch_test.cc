#include "front/mapped/hint_switch.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "front/mapped/hint_table.h"

namespace spw::front {
namespace {

class HintSwitchTest : public testing::Test {
 protected:
  HintSwitchTest() {
    EXPECT_TRUE(HintTable::create(12, kMiB).is_ok());
    HintTable::switch_on(false);
  }
  ~HintSwitchTest() override { HintTable::switch_on(false); }

  // A look at which `trips` of `blocks` more that came in were asked for.
  void look(int trips, uint64_t blocks) {
    for (int i = 0; i < trips; ++i) switch_.note_trip();
    blocks_ += blocks;
    switch_.look(blocks_);
  }
  // A first trip, and nothing for a while.
  void find_not_worth_it() {
    look(1, 1);
    for (int i = 0; i < 100; ++i) look(0, 0);
    EXPECT_FALSE(HintTable::is_on());
  }
  HintSwitch switch_;
  uint64_t blocks_ = 0;
};

TEST_F(HintSwitchTest, is_on_from_the_first_trip) {
  EXPECT_FALSE(HintTable::is_on());
  switch_.note_trip();
  EXPECT_TRUE(HintTable::is_on());
}

TEST_F(HintSwitchTest, misses_on_demand_switch_it_on_again) {
  find_not_worth_it();
  look(20, 20);
  EXPECT_TRUE(HintTable::is_on());
}

TEST_F(HintSwitchTest, a_few_misses_do_not) {
  find_not_worth_it();
  for (int i = 0; i < 100; ++i) look(1, 10);
  EXPECT_FALSE(HintTable::is_on());
}

TEST_F(HintSwitchTest, misses_between_many_blocks_read_ahead_do_not) {
  find_not_worth_it();
  for (int i = 0; i < 100; ++i) look(10, 1000);
  EXPECT_FALSE(HintTable::is_on());
}

TEST_F(HintSwitchTest, stays_on_while_blocks_are_missed) {
  for (int i = 0; i < 100; ++i) {
    look(40, 400);
    EXPECT_TRUE(HintTable::is_on());
  }
}

TEST_F(HintSwitchTest, goes_off_after_a_while_when_nearly_all_is_read_ahead) {
  look(20, 20);
  int looks = 0;
  while (HintTable::is_on() && looks < 1000) {
    look(3, 1000);
    ++looks;
  }
  EXPECT_GT(looks, 5) << "one look is too short to tell";
  EXPECT_LT(looks, 100);
}

TEST_F(HintSwitchTest, goes_off_after_a_while_when_nothing_is_missed) {
  look(20, 20);
  for (int i = 0; i < 100; ++i) look(0, 0);
  EXPECT_FALSE(HintTable::is_on());
  EXPECT_TRUE(switch_.is_idle());
}

}  // namespace
}  // namespace spw::front
