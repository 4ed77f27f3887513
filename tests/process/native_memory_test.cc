#include "process/native_memory.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace spw::process {
namespace {

constexpr uint64_t kAllowance = NativeMemory::kNativeAllowanceBytes;

TEST(NativeMemory, little_of_it_takes_nothing_from_the_frames) {
  EXPECT_EQ(NativeMemory::taken_from_frames(0, kGiB), 0u);
  EXPECT_EQ(NativeMemory::taken_from_frames(kAllowance, kGiB), 0u);
}

TEST(NativeMemory, what_is_more_takes_as_much) {
  EXPECT_EQ(NativeMemory::taken_from_frames(kAllowance + 5 * kMiB, kGiB), 5 * kMiB);
}

TEST(NativeMemory, frames_keep_a_fourth) {
  EXPECT_EQ(NativeMemory::taken_from_frames(8 * kGiB, kGiB), kGiB / 4 * 3);
  EXPECT_EQ(NativeMemory::taken_from_frames(8 * kGiB, 0), 0u);
}

TEST(NativeMemory, a_tenth_above_the_cap_is_over_it) {
  EXPECT_FALSE(NativeMemory::is_over(kGiB + kGiB / 10, kGiB));
  EXPECT_TRUE(NativeMemory::is_over(kGiB + kGiB / 10 + 1, kGiB));
}

TEST(NativeMemory, of_a_small_cap_the_allowance_counts) {
  EXPECT_FALSE(NativeMemory::is_over(20 * kMiB + kAllowance + kMiB, 20 * kMiB));
  EXPECT_TRUE(NativeMemory::is_over(20 * kMiB + kAllowance + kMiB + 1, 20 * kMiB));
}

}  // namespace
}  // namespace spw::process
