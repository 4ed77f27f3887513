#include "cache/page_cleaner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "cache_fixture.h"

namespace spw::cache {
namespace {

using telemetry::Counter;

constexpr uint32_t kFrames = 1024;
// Many looks of a keeper: for what must not happen.
constexpr auto kSomeLooks = std::chrono::milliseconds(60);

class PageCleanerTest : public testing::Test {
 protected:
  void use(uint64_t blocks) {
    for (uint64_t block = 0; block < blocks; ++block) ASSERT_TRUE(cache_.write(block, block + 1));
  }
  void keep_room(PageCleaner::Options options, std::function<void()> looked = {}) {
    keeper_ = std::make_unique<PageCleaner>(cache_.cache(), options, std::move(looked));
    ASSERT_TRUE(keeper_->start());
  }
  uint32_t free_frames() { return cache_.cache().free_frames(); }
  void await_free(uint32_t frames) {
    while (free_frames() < frames) std::this_thread::yield();
  }

  CacheFixture cache_{small_cache(kFrames)};
  CounterDelta counted_;
  std::unique_ptr<PageCleaner> keeper_;
};

TEST_F(PageCleanerTest, evicts_from_the_low_watermark_to_the_high_one) {
  use(kFrames);
  ASSERT_EQ(free_frames(), 0u);
  keep_room({.evictors = 1, .low_percent = 10, .high_percent = 25});
  await_free(kFrames / 4);
  std::this_thread::sleep_for(kSomeLooks);
  EXPECT_LE(free_frames(), kFrames / 4 + cache_.cache().partition_map().count()) << "more than was asked for";
  for (uint64_t block = 0; block < kFrames; ++block) ASSERT_EQ(cache_.read(block), block + 1);
}

TEST_F(PageCleanerTest, of_few_frames_more_than_a_percent_is_kept_free) {
  Options options = small_cache(kFrames);
  options.partitions = 1;
  options.ahead_frames_min = 32;
  CacheFixture cache(options);
  for (uint64_t block = 0; block < kFrames; ++block) ASSERT_TRUE(cache.write(block, block + 1));
  PageCleaner keeper(cache.cache(), {.evictors = 1, .low_percent = 1, .high_percent = 2});
  ASSERT_TRUE(keeper.start());
  while (cache.cache().free_frames() < 2 * options.ahead_frames_min) std::this_thread::yield();
}

TEST_F(PageCleanerTest, leaves_alone_what_is_above_the_low_watermark) {
  use(kFrames / 2);
  keep_room({.evictors = 2, .low_percent = 10, .high_percent = 90});
  std::this_thread::sleep_for(kSomeLooks);
  EXPECT_EQ(counted_(Counter::evictions), 0u);
}

TEST_F(PageCleanerTest, several_evictors_keep_room_while_blocks_come_in) {
  keep_room({.evictors = 4, .low_percent = 20, .high_percent = 40});
  for (int round = 0; round < 5; ++round) use(3 * kFrames);
  await_free(kFrames / 5);
  for (uint64_t block = 0; block < 3 * kFrames; ++block) ASSERT_EQ(cache_.read(block), block + 1);
}

TEST_F(PageCleanerTest, without_evictors_memory_may_be_full) {
  use(kFrames);
  keep_room({.evictors = 0, .low_percent = 10, .high_percent = 25});
  std::this_thread::sleep_for(kSomeLooks);
  EXPECT_EQ(free_frames(), 0u);
  EXPECT_EQ(counted_(Counter::evictions), 0u);
}

// Nobody may miss any more, and dirty blocks do not go at once.
TEST_F(PageCleanerTest, without_evictors_a_lower_limit_is_kept_all_the_same) {
  use(kFrames);
  keep_room({.evictors = 0});
  cache_.cache().set_frame_limit(kFrames / 2);
  while (counted_(Counter::evictions) < kFrames / 2) std::this_thread::yield();
  for (uint64_t block = 0; block < kFrames; ++block) ASSERT_EQ(cache_.read(block), block + 1);
}

TEST_F(PageCleanerTest, one_of_the_threads_tells_of_each_look) {
  Atomic<int> looks(0);
  keep_room({.evictors = 2}, [&] { looks.fetch_add_relaxed(1); });
  while (looks.load_relaxed() < 3) std::this_thread::yield();
  keeper_->stop();
  const int in_all = looks.load_relaxed();
  std::this_thread::sleep_for(kSomeLooks);
  EXPECT_EQ(looks.load_relaxed(), in_all);
}

}  // namespace
}  // namespace spw::cache
