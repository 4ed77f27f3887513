#include "heap/range_allocator.h"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "base/units.h"

namespace spw::heap {
namespace {

constexpr uint64_t kUnit = 4096;
constexpr uintptr_t kBegin = uintptr_t{1} << 45;

TEST(RangeAllocator, takes_the_smallest_range_that_fits) {
  region::NativeMemory memory;
  RangeAllocator ranges(memory, kBegin, 100 * kUnit, kUnit);
  uintptr_t a = ranges.take(10 * kUnit, kUnit);
  uintptr_t b = ranges.take(kUnit, kUnit);
  uintptr_t c = ranges.take(4 * kUnit, kUnit);
  uintptr_t d = ranges.take(kUnit, kUnit);
  EXPECT_EQ(a, kBegin);
  EXPECT_EQ(b, a + 10 * kUnit);
  ranges.give(a, 10 * kUnit);
  ranges.give(c, 4 * kUnit);
  EXPECT_EQ(ranges.take(3 * kUnit, kUnit), c);
  EXPECT_EQ(ranges.take(8 * kUnit, kUnit), a);
  EXPECT_NE(d, 0u);
  ranges.check_invariants();
}

TEST(RangeAllocator, joins_what_is_given_back_from_both_sides) {
  region::NativeMemory memory;
  RangeAllocator ranges(memory, kBegin, 64 * kUnit, kUnit);
  uintptr_t at[4];
  for (auto& a : at) a = ranges.take(16 * kUnit, kUnit);
  EXPECT_EQ(ranges.take(kUnit, kUnit), 0u);
  ranges.give(at[0], 16 * kUnit);
  ranges.give(at[2], 16 * kUnit);
  EXPECT_EQ(ranges.free_ranges(), 2u);
  ranges.give(at[1], 16 * kUnit);
  EXPECT_EQ(ranges.free_ranges(), 1u);
  EXPECT_TRUE(ranges.take_at(at[1], 32 * kUnit));
  EXPECT_FALSE(ranges.take_at(at[2], kUnit));
  ranges.check_invariants();
}

TEST(RangeAllocator, new_ranges_are_ones_that_nobody_ever_had) {
  region::NativeMemory memory;
  RangeAllocator ranges(memory, kBegin, 64 * kUnit, kUnit);
  const uintptr_t end = kBegin + 64 * kUnit;
  EXPECT_EQ(ranges.take_new(4 * kUnit, kUnit), end - 4 * kUnit);
  EXPECT_EQ(ranges.take_new(4 * kUnit, 16 * kUnit), end - 16 * kUnit);
  EXPECT_FALSE(ranges.take_at(end - 12 * kUnit, kUnit)) << "what lies between two is nobody's for good";
  const uintptr_t old = ranges.take(30 * kUnit, kUnit);
  ranges.give(old, 30 * kUnit);
  EXPECT_EQ(ranges.free_ranges(), 1u);
  EXPECT_EQ(ranges.take_new(19 * kUnit, kUnit), 0u);
  EXPECT_EQ(ranges.take_new(18 * kUnit, 32 * kUnit), 0u);
  EXPECT_EQ(ranges.take_new(17 * kUnit, kUnit), old + 31 * kUnit);
  EXPECT_TRUE(ranges.take_at(old + 30 * kUnit, kUnit));
  EXPECT_EQ(ranges.take_new(kUnit, kUnit), 0u);
  EXPECT_EQ(ranges.take(30 * kUnit, kUnit), old);
  EXPECT_EQ(ranges.take(kUnit, kUnit), 0u);
  ranges.check_invariants();
}

TEST(RangeAllocator, random_operations_agree_with_a_model) {
  region::NativeMemory memory;
  constexpr uint64_t kUnits = 4096;
  RangeAllocator ranges(memory, kBegin, kUnits * kUnit, kUnit);
  std::map<uintptr_t, uint64_t> taken;
  std::vector<bool> used(kUnits);
  Rng rng(1);
  auto mark = [&](uintptr_t address, uint64_t units, bool value) {
    for (uint64_t i = 0; i < units; ++i) {
      size_t unit = (address - kBegin) / kUnit + i;
      ASSERT_NE(used[unit], value);
      used[unit] = value;
    }
  };
  for (int round = 0; round < 20000; ++round) {
    if (rng.below(5) < 3) {
      uint64_t units = 1 + rng.below(30), alignment = kUnit << rng.below(8);
      uintptr_t address = ranges.take(units * kUnit, alignment);
      if (address == 0) continue;
      ASSERT_EQ(address % alignment, 0u);
      mark(address, units, true);
      taken[address] = units;
    } else if (!taken.empty()) {
      auto it = taken.lower_bound(kBegin + rng.below(kUnits) * kUnit);
      if (it == taken.end()) it = taken.begin();
      mark(it->first, it->second, false);
      ranges.give(it->first, it->second * kUnit);
      taken.erase(it);
    }
    if (round % 1000 == 0) ranges.check_invariants();
  }
  for (auto [address, units] : taken) ranges.give(address, units * kUnit);
  EXPECT_EQ(ranges.free_ranges(), 1u);
  EXPECT_EQ(ranges.free_bytes(), kUnits * kUnit);
}

}  // namespace
}  // namespace spw::heap
