// Options, the cap and statistics of the process.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "region_kit.h"

namespace spw::testing {
namespace {

class ProcessTest : public RegionTest {
 protected:
  static size_t resident_bytes(void* memory, size_t bytes) {
    std::vector<unsigned char> pages(bytes / kBlock);
    EXPECT_EQ(::mincore(memory, bytes, pages.data()), 0);
    return kBlock * static_cast<size_t>(std::count_if(pages.begin(), pages.end(),
                                                      [](unsigned char page) { return (page & 1) != 0; }));
  }
};

TEST_F(ProcessTest, the_library_has_the_version_of_its_header) {
  EXPECT_EQ(std::to_string(SPW_VERSION_MAJOR) + "." + std::to_string(SPW_VERSION_MINOR) + "." +
                std::to_string(SPW_VERSION_PATCH),
            spw_version());
}

TEST_F(ProcessTest, options_are_set_until_managed_memory_is_used) {
  EXPECT_EQ(spw_set_option("memory", "32M"), 0) << spw_error_message();
  EXPECT_EQ(spw_set_option("block", "16K"), 0) << spw_error_message();
  EXPECT_EQ(spw_set_option("high_watermark", "20"), 0) << spw_error_message();
  EXPECT_EQ(spw_set_option("low-watermark", "10"), 0) << spw_error_message();
  EXPECT_EQ(spw_set_option("memory", "48M"), 0) << "again, over what was set";
  EXPECT_EQ(spw_set_option("memry", "1G"), -EINVAL);
  EXPECT_NE(std::strstr(spw_error_message(), "memory"), nullptr) << spw_error_message();
  EXPECT_EQ(spw_set_option("block", "5000"), -EINVAL);
  EXPECT_NE(std::strstr(spw_error_message(), "power of two"), nullptr) << spw_error_message();
  EXPECT_EQ(spw_set_option("high_watermark", "5"), -EINVAL) << "below the low one";
  EXPECT_EQ(spw_set_option(nullptr, "5"), -EINVAL);
  EXPECT_EQ(spw_memory_limit(), 48 * kMega);
  EXPECT_EQ(statistics().block_bytes, 16384u);
  EXPECT_EQ(spw_set_option("memory", "64M"), -EBUSY);
  uint64_t* words = map_anonymous(kDataBytes);
  for (size_t i = 0; i < kWords; ++i) words[i] = word_of(i);
  EXPECT_EQ(wrong_words(words, kWords, word_of), 0u);
}

TEST_F(ProcessTest, a_lower_cap_evicts_at_once_and_can_be_raised_again) {
  uint64_t* words = map_anonymous(kDataBytes);
  for (size_t i = 0; i < kWords; ++i) words[i] = word_of(i);
  ASSERT_EQ(spw_memory_limit(), 16 * kMega);
  const uint64_t before = statistics().cached_bytes;
  ASSERT_EQ(spw_set_memory_limit(12 * kMega), 0) << spw_error_message();
  EXPECT_EQ(spw_memory_limit(), 12 * kMega);
  // A few frames were free before.
  EXPECT_LE(statistics().cached_bytes + 4 * kMega, before + kMega / 2);
  EXPECT_EQ(wrong_words(words, kWords, word_of), 0u);
  EXPECT_LE(statistics().cached_bytes + 3 * kMega, before);
  ASSERT_EQ(spw_set_memory_limit(16 * kMega), 0);
  EXPECT_EQ(wrong_words(words, kWords, word_of), 0u);
  EXPECT_EQ(spw_set_memory_limit(17 * kMega), -EINVAL);
  EXPECT_EQ(spw_set_memory_limit(kMega), -EINVAL);
  ASSERT_EQ(spw_pin_range(words, 5 * kMega), 0) << spw_error_message();
  EXPECT_EQ(spw_set_memory_limit(10 * kMega), -EBUSY);
  EXPECT_EQ(spw_memory_limit(), 16 * kMega);
  EXPECT_EQ(wrong_words(words, kWords, word_of), 0u);
}

TEST_F(ProcessTest, a_lower_cap_waits_for_a_slow_store) {
  ::setenv("SPILLWAY_TEST_FAULTS", "write:1+:delay:20000", 1);
  constexpr size_t kBytes = 10 * kMega;
  uint64_t* words = map_anonymous(kBytes);
  for (size_t i = 0; i < kBytes / 8; ++i) words[i] = word_of(i);
  EXPECT_GE(resident_bytes(words, kBytes), kBytes);
  ASSERT_EQ(spw_set_memory_limit(8 * kMega), 0) << spw_error_message();
  EXPECT_LE(resident_bytes(words, kBytes), 8 * kMega);
  EXPECT_EQ(wrong_words(words, kBytes / 8, word_of), 0u);
}

TEST_F(ProcessTest, a_lower_cap_holds_although_the_store_is_full) {
  ::setenv("SPILLWAY_TEST_FAULTS", "write:1+:ENOSPC", 1);
  ::setenv("SPILLWAY_TEST_FRAME_WAIT_MS", "50", 1);
  constexpr size_t kBytes = 10 * kMega;
  uint64_t* words = map_anonymous(kBytes);
  for (size_t i = 0; i < kBytes / 8; ++i) words[i] = word_of(i);
  EXPECT_EQ(spw_set_memory_limit(8 * kMega), -ETIMEDOUT);
  EXPECT_NE(std::strstr(spw_error_message(), "No space left"), nullptr) << spw_error_message();
  EXPECT_EQ(spw_memory_limit(), 8 * kMega);
  EXPECT_EQ(wrong_words(words, kBytes / 8, word_of), 0u) << "all of it is where it was";
}

TEST_F(ProcessTest, statistics_keep_to_the_size_that_the_program_knows) {
  struct {
    size_t size;
    uint64_t memory_limit_bytes;
    uint64_t guard;
  } small{16, 0, 0xAB};
  ASSERT_EQ(spw_get_statistics(reinterpret_cast<spw_statistics*>(&small)), 0);
  EXPECT_EQ(small.size, 16u);
  EXPECT_EQ(small.memory_limit_bytes, 16 * kMega);
  EXPECT_EQ(small.guard, 0xABu);
  EXPECT_EQ(spw_get_statistics(nullptr), -EINVAL);
  small.size = 4;
  EXPECT_EQ(spw_get_statistics(reinterpret_cast<spw_statistics*>(&small)), -EINVAL);
}

}  // namespace
}  // namespace spw::testing
