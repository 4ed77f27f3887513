// What can be said about ranges of managed memory, over a memory of a quarter of the data.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "region_kit.h"

namespace spw::testing {
namespace {

class RangesTest : public RegionTest {
 protected:
  // Reads through memory that is not the range under test, so that all else is evicted.
  void churn() {
    if (!other_) {
      other_ = map_anonymous(kDataBytes);
      for (size_t i = 0; i < kWords; i += kBlock / 8) other_[i] = i;
    }
    uint64_t sum = 0;
    for (int round = 0; round < 2; ++round)
      for (size_t i = 0; i < kWords; i += kBlock / 8) sum += other_[i];
    EXPECT_EQ(sum, 2 * (kWords / 512) * (kWords / 512 - 1) / 2 * 512);
  }
  // How many misses it takes to read a word of every block.
  uint64_t misses_to_read(const uint64_t* words, size_t bytes) {
    const uint64_t before = statistics().misses;
    size_t wrong = 0;
    for (size_t i = 0; i < bytes / 8; i += kBlock / 8) wrong += words[i] != word_of(i);
    EXPECT_EQ(wrong, 0u);
    return statistics().misses - before;
  }
  uint64_t* other_ = nullptr;
};

TEST_F(RangesTest, a_flush_writes_a_range_and_keeps_it) {
  make_file();
  uint64_t* words = map(SPW_MAP_SHARED);
  words[3] = 33;
  words[kMega / 8] = 44;
  ASSERT_EQ(spw_flush(words, 64), 0);
  EXPECT_EQ(word_in_file(3), 33u);
  EXPECT_NE(word_in_file(kMega / 8), 44u) << "not of this range";
  const uint64_t misses = statistics().misses;
  EXPECT_EQ(words[3], 33u);
  EXPECT_EQ(statistics().misses, misses) << "it is in memory still";
  words[3] = 34;
  ASSERT_EQ(spw_flush_all(), 0);
  EXPECT_EQ(word_in_file(3), 34u);
  EXPECT_EQ(word_in_file(kMega / 8), 44u);
  // A fault's thread may have held its block when it was written, which leaves it dirty.
  ASSERT_EQ(spw_flush(words, kDataBytes), 0);
  const uint64_t written = statistics().writebacks;
  ASSERT_EQ(spw_flush(words, kDataBytes), 0);
  EXPECT_EQ(statistics().writebacks, written) << "nothing is dirty any more";
  words[kWords - 1] = 55;
  ASSERT_EQ(spw_sync(words, kDataBytes), 0);
  EXPECT_EQ(word_in_file(kWords - 1), 55u);
  EXPECT_EQ(spw_unmap(words), 0);
}

TEST_F(RangesTest, a_flush_of_memory_that_is_not_managed_is_refused) {
  uint64_t* words = map_anonymous(kMega);
  uint64_t here = 0;
  EXPECT_EQ(spw_flush(&here, 8), -EINVAL);
  EXPECT_EQ(spw_sync(&here, 8), -EINVAL);
  EXPECT_EQ(spw_flush(words, kMega), 0);
  EXPECT_EQ(spw_flush(words, 512 * kMega), -EINVAL) << "its end is nobody's";
  EXPECT_EQ(spw_flush(words + 1, 0), 0);
  EXPECT_EQ(spw_unmap(words), 0);
  EXPECT_EQ(spw_flush(words, kMega), -EINVAL);
}

TEST_F(RangesTest, ranges_that_were_asked_for_come_in_without_a_miss) {
  make_file();
  uint64_t* words = map(SPW_MAP_READ_ONLY);
  std::vector<spw_range> ranges;
  for (size_t i = 0; i < 16; ++i)
    ranges.push_back({reinterpret_cast<char*>(words) + i * 3 * kMega + 100, 2 * kBlock});
  uint64_t here = 0;
  ranges.push_back({&here, 8});
  ASSERT_EQ(spw_prefetch_ranges(ranges.data(), ranges.size()), 0);
  for (int wait = 0; wait < 200 && statistics().ahead_fills < 16 * 2; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const uint64_t misses = statistics().misses;
  for (size_t i = 0; i < 16; ++i) ASSERT_EQ(words[i * 3 * kMega / 8 + 20], word_of(i * 3 * kMega / 8 + 20));
  // There are few buffers for reads ahead with so little memory, so not all may have come.
  EXPECT_LT(statistics().misses - misses, 16u);
  EXPECT_EQ(spw_prefetch_ranges(nullptr, 1), -EINVAL);
  EXPECT_EQ(spw_prefetch_ranges(nullptr, 0), 0);
  EXPECT_EQ(spw_prefetch(words, kDataBytes), 0);
  EXPECT_EQ(spw_prefetch(&here, 100), 0);
  EXPECT_EQ(spw_unmap(words), 0);
}

TEST_F(RangesTest, a_pinned_range_stays_whatever_else_is_used) {
  make_file();
  uint64_t* words = map(SPW_MAP_SHARED);
  constexpr size_t kHot = 4 * kMega;
  EXPECT_EQ(misses_to_read(words, kHot) > 0, true);
  churn();
  EXPECT_GT(misses_to_read(words, kHot), 0u) << "without a pin it was evicted";
  ASSERT_EQ(spw_pin_range(words, kHot), 0) << spw_error_message();
  EXPECT_EQ(statistics().pinned_bytes, kHot);
  churn();
  EXPECT_EQ(misses_to_read(words, kHot), 0u);
  for (size_t i = 1; i < kHot / 8; i += 512) words[i] = i;  // stores to a pinned block are kept, too
  ASSERT_EQ(spw_flush(words, kHot), 0);
  EXPECT_EQ(word_in_file(1), 1u);
  ASSERT_EQ(spw_unpin_range(words, kHot), 0);
  EXPECT_EQ(statistics().pinned_bytes, 0u);
  churn();
  EXPECT_GT(misses_to_read(words, kHot), 0u);
  for (size_t i = 1; i < kHot / 8; i += 512) ASSERT_EQ(words[i], i);
  EXPECT_EQ(spw_unmap(words), 0);
}

TEST_F(RangesTest, pins_take_half_of_the_memory_at_most) {
  make_file();
  uint64_t* words = map(SPW_MAP_READ_ONLY);
  EXPECT_EQ(spw_pin_range(words, 12 * kMega), -ENOMEM);
  EXPECT_EQ(statistics().pinned_bytes, 0u);
  ASSERT_EQ(spw_pin_range(words, 3 * kMega), 0);
  EXPECT_EQ(spw_pin_range(words + 4 * kMega / 8, 4 * kMega), -ENOMEM);
  churn();  // the other half serves everybody else
  EXPECT_EQ(spw_unpin_range(words, kMega), -EINVAL) << "other bounds";
  EXPECT_EQ(spw_unpin_range(words + kMega / 8, 3 * kMega), -EINVAL);
  EXPECT_EQ(spw_unpin_range(words, 3 * kMega), 0);
  EXPECT_EQ(spw_unpin_range(words, 3 * kMega), -EINVAL);
  EXPECT_EQ(spw_unmap(words), 0);
  uint64_t here = 0;
  EXPECT_EQ(spw_pin_range(&here, 8), -EINVAL);
}

TEST_F(RangesTest, unmapping_lets_go_of_what_was_pinned) {
  for (int round = 0; round < 8; ++round) {
    uint64_t* words = map_anonymous(8 * kMega);
    ASSERT_EQ(spw_pin_range(words + kMega / 8, 3 * kMega), 0) << spw_error_message();
    words[kMega / 8] = 1;
    ASSERT_EQ(spw_unmap(words), 0);
    ASSERT_EQ(statistics().pinned_bytes, 0u);
  }
}

TEST_F(RangesTest, anonymous_memory_that_is_not_needed_becomes_zeros) {
  uint64_t* words = map_anonymous(kDataBytes);
  for (size_t i = 0; i < kWords; i += 16) words[i] = word_of(i);
  char* bytes = reinterpret_cast<char*>(words);
  ASSERT_EQ(spw_advise(bytes + 100, 40 * kMega, SPW_DONTNEED), 0);
  EXPECT_EQ(words[0], word_of(0)) << "a part of a block stays";
  for (size_t i = kBlock / 8; i < 40 * kMega / 8; i += 16) ASSERT_EQ(words[i], 0u) << i;
  for (size_t i = 40 * kMega / 8; i < kWords; i += 16) ASSERT_EQ(words[i], word_of(i)) << i;
  EXPECT_EQ(spw_unmap(words), 0);
}

TEST_F(RangesTest, what_a_store_holds_is_written_when_it_is_not_needed) {
  make_file();
  uint64_t* words = map(SPW_MAP_SHARED);
  words[9] = 99;
  ASSERT_EQ(spw_advise(words, kDataBytes, SPW_DONTNEED), 0);
  EXPECT_EQ(word_in_file(9), 99u);
  EXPECT_EQ(words[9], 99u);
  EXPECT_EQ(spw_unmap(words), 0);
}

TEST_F(RangesTest, advice_changes_how_much_a_miss_brings_in) {
  make_file();
  uint64_t* words = map(SPW_MAP_READ_ONLY, 0, 0, 64 * 1024);
  const uint64_t at_start = statistics().ahead_fills;
  // One block in each 64 KiB, far apart and in no order.
  std::vector<size_t> pieces(128);
  std::iota(pieces.begin(), pieces.end(), size_t{0});
  std::shuffle(pieces.begin(), pieces.end(), std::mt19937_64(1));
  auto read_pieces = [&](size_t first) {
    for (size_t piece : pieces) {
      const size_t i = (first + piece * 64 * 1024) / 8;
      EXPECT_EQ(words[i], word_of(i));
    }
  };
  // Reads ahead come late: what is wanted is waited for.
  auto comes_ahead = [&](size_t first) {
    const uint64_t before = statistics().ahead_fills;
    read_pieces(first);
    for (int wait = 0; wait < 1000 && statistics().ahead_fills <= before + 128; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return statistics().ahead_fills - before;
  };
  // First, while no read ahead is under way: what is asked for and arrives behind it says that nothing else will.
  ASSERT_EQ(spw_advise(words + 16 * kMega / 8, 8 * kMega, SPW_RANDOM), 0);
  read_pieces(16 * kMega);
  ASSERT_EQ(spw_prefetch(words + 60 * kMega / 8, 16 * kBlock), 0);
  for (size_t block = 0; block < 16; ++block)
    ASSERT_EQ(words[60 * kMega / 8 + block * 512], word_of(60 * kMega / 8 + block * 512));
  // Among so many places some are equally far apart by chance, and
  // taken for a stream; with the unit there would be 16 for each.
  EXPECT_LT(statistics().ahead_fills - at_start, 256u);
  EXPECT_GT(comes_ahead(0), 128u);
  ASSERT_EQ(spw_advise(words + 32 * kMega / 8, 8 * kMega, SPW_SEQUENTIAL), 0);
  EXPECT_GT(comes_ahead(32 * kMega), 128u);
  ASSERT_EQ(spw_advise(words, kDataBytes, SPW_RANDOM), 0);
  ASSERT_EQ(spw_advise(words, kDataBytes, SPW_NORMAL), 0);
  EXPECT_GT(comes_ahead(48 * kMega), 128u);
  EXPECT_EQ(spw_advise(words, kMega, SPW_WILLNEED), 0);
  EXPECT_EQ(spw_advise(words, kMega, static_cast<spw_advice>(17)), -EINVAL);
  uint64_t here = 0;
  EXPECT_EQ(spw_advise(&here, 8, SPW_RANDOM), -EINVAL);
  EXPECT_EQ(spw_unmap(words), 0);
}

}  // namespace
}  // namespace spw::testing
