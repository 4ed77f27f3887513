#include "cache/page_sets/set_frequencies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/rng.h"

namespace spw::cache {
namespace {

constexpr uint8_t kAll = UINT8_MAX;

class SetRules : public testing::TestWithParam<SetRule> {
 protected:
  void fill() {
    for (unsigned slot = 0; slot < kBlocksASet; ++slot) insert(slot, slot);
  }
  void insert(unsigned slot, uint64_t block) {
    blocks[slot] = block;
    set.insert(GetParam(), slot, BlockId(block));
  }
  unsigned evict() {
    const unsigned slot = set.victim(GetParam(), kAll);
    set.remove(GetParam(), slot, BlockId(blocks[slot]));
    return slot;
  }
  std::array<uint64_t, kBlocksASet> blocks = {};
  SetFrequencies set;
};

TEST_P(SetRules, a_set_of_new_blocks_is_a_queue) {
  fill();
  for (uint64_t next = kBlocksASet; next < 5 * kBlocksASet; ++next) {
    const unsigned slot = evict();
    EXPECT_EQ(slot, next % kBlocksASet);
    insert(slot, next);
  }
}

TEST_P(SetRules, what_is_used_stays) {
  fill();
  for (unsigned slot : {0u, 1u, 3u}) set.note_use(GetParam(), slot);
  EXPECT_EQ(evict(), 2u);
}

TEST_P(SetRules, the_victim_is_eligible) {
  fill();
  for (unsigned slot = 0; slot < kBlocksASet; ++slot)
    EXPECT_EQ(set.victim(GetParam(), static_cast<uint8_t>(1u << slot)), slot);
}

TEST_P(SetRules, invariants_hold_whatever_happens) {
  Rng rng(1);
  fill();
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t next = rng.below(200);
    if (rng.below(3) == 0 && std::find(blocks.begin(), blocks.end(), next) == blocks.end()) {
      const unsigned slot = set.victim(GetParam(), static_cast<uint8_t>(1 + rng.below(kAll)));
      set.remove(GetParam(), slot, BlockId(blocks[slot]));
      insert(slot, next);
    } else {
      set.note_use(GetParam(), static_cast<unsigned>(rng.below(kBlocksASet)));
    }
    set.check_invariants(GetParam());
  }
}

std::string rule_name(const testing::TestParamInfo<SetRule>& info) {
  return info.param == SetRule::kLru ? "lru" : info.param == SetRule::kLfu ? "lfu" : "nrlfu";
}
INSTANTIATE_TEST_SUITE_P(All, SetRules, testing::Values(SetRule::kLru, SetRule::kLfu, SetRule::kNrLfu),
                         rule_name);

TEST(SetFrequencies, counts_are_halved_when_one_is_full) {
  SetFrequencies set;
  for (unsigned slot = 0; slot < kBlocksASet; ++slot) set.insert(SetRule::kLfu, slot, BlockId(slot));
  for (int i = 0; i < 1000; ++i) set.note_use(SetRule::kLfu, 0);
  for (int i = 0; i < 9; ++i) set.note_use(SetRule::kLfu, 1);
  EXPECT_EQ(set.frequency(0), 255);
  EXPECT_EQ(set.frequency(1), 10);
  set.remove(SetRule::kLfu, 2, BlockId(2));
  set.insert(SetRule::kLfu, 2, BlockId(100));
  EXPECT_EQ(set.frequency(0), 127);
  EXPECT_EQ(set.frequency(1), 5);
  EXPECT_EQ(set.frequency(2), 1) << "the new one counts its one use";
}

TEST(SetFrequencies, a_block_that_comes_back_goes_on_counting_only_with_history) {
  for (const SetRule rule : {SetRule::kLfu, SetRule::kNrLfu}) {
    SetFrequencies set;
    for (unsigned slot = 0; slot < kBlocksASet; ++slot) set.insert(rule, slot, BlockId(slot));
    for (int i = 0; i < 5; ++i) set.note_use(rule, 3);
    set.remove(rule, 3, BlockId(3));
    set.insert(rule, 3, BlockId(50));
    set.remove(rule, 3, BlockId(50));
    set.insert(rule, 3, BlockId(3));
    EXPECT_EQ(set.frequency(3), rule == SetRule::kNrLfu ? 7 : 1);
  }
}

TEST(SetFrequencies, the_history_forgets_who_left_longest_ago) {
  SetFrequencies set;
  const auto pass = [&](uint64_t block) {
    set.insert(SetRule::kNrLfu, 0, BlockId(block));
    const uint8_t frequency = set.frequency(0);
    set.remove(SetRule::kNrLfu, 0, BlockId(block));
    return frequency;
  };
  for (uint64_t block = 0; block < SetFrequencies::kHistory + 1; ++block) EXPECT_EQ(pass(block), 1);
  EXPECT_EQ(pass(1), 2);
  EXPECT_EQ(pass(0), 1);
}

}  // namespace
}  // namespace spw::cache
