#include "base/rng.h"
#include "cache_fixture.h"

namespace spw::cache {
namespace {

using telemetry::Counter;

class Readahead : public testing::TestWithParam<Kind> {
 protected:
  static Options options(uint32_t frames) {
    Options made = one_partition(frames, GetParam());
    made.readahead_blocks_max = 64;
    return made;
  }
};

TEST_P(Readahead, a_sequential_reader_is_served_by_few_large_requests) {
  CacheFixture f(options(1024));
  for (uint64_t b = 0; b < 2048; ++b) f.store_directly(b, b + 1);
  uint64_t before = f.plan().requests(store::Op::kRead);
  CounterDelta delta;
  for (uint64_t b = 0; b < 2048; ++b) EXPECT_EQ(f.read(b), b + 1);
  EXPECT_LT(f.plan().requests(store::Op::kRead) - before, 2048u / 16);
  EXPECT_LE(delta(Counter::fills), 4u);
  EXPECT_EQ(delta(Counter::readahead_hits) + delta(Counter::fills), 2048u);
}

TEST_P(Readahead, a_prefetch_reads_neighbours_in_one_request) {
  CacheFixture f(options(1024));
  for (uint64_t b = 64; b < 128; ++b) f.store_directly(b, b + 1);
  uint64_t before = f.plan().requests(store::Op::kRead);
  f.cache().prefetch(f.client(), BlockId(64), 64);
  EXPECT_EQ(f.plan().requests(store::Op::kRead) - before, 1u);
  CounterDelta delta;
  for (uint64_t b = 64; b < 128; ++b) EXPECT_EQ(f.read(b), b + 1);
  EXPECT_EQ(delta(Counter::shared_misses), 0u);
}

TEST_P(Readahead, random_readers_cause_no_read_ahead) {
  CacheFixture f(options(1024));
  for (uint64_t b = 0; b < 30'000; ++b) f.blocks().set_contents(BlockId(b), true);
  CounterDelta delta;
  Rng rng(3);
  for (int i = 0; i < 5000; ++i) f.read(rng.below(30'000));
  EXPECT_LT(delta(Counter::readahead_fills), 100u);
}

TEST_P(Readahead, blocks_without_contents_are_not_read) {
  CacheFixture f(options(1024));
  for (uint64_t b = 0; b < 1000; ++b) EXPECT_EQ(f.read(b), 0u);
  EXPECT_EQ(f.plan().requests(store::Op::kRead), 0u);
}

TEST_P(Readahead, a_stream_of_overwrites_reads_nothing) {
  CacheFixture f(options(1024));
  for (uint64_t b = 0; b < 1000; ++b) f.blocks().set_contents(BlockId(b), true);
  for (uint64_t b = 0; b < 1000; ++b) ASSERT_TRUE(f.write(b, b, Access::kOverwrite));
  EXPECT_EQ(f.plan().requests(store::Op::kRead), 0u);
}

TEST_P(Readahead, unused_blocks_take_a_share_of_the_frames_only) {
  CacheFixture f(options(256));
  for (uint64_t b = 0; b < 4000; ++b) f.blocks().set_contents(BlockId(b), true);
  for (uint64_t first = 0; first < 4000; first += 64) f.cache().prefetch(f.client(), BlockId(first), 64);
  EXPECT_LE(f.plan().requests(store::Op::kRead), 64u / 16);
  EXPECT_GE(f.cache().free_frames(), 256u - 64);
}

TEST_P(Readahead, a_failed_read_ahead_is_no_error_of_its_readers) {
  CacheFixture f(options(1024));
  for (uint64_t b = 64; b < 128; ++b) f.store_directly(b, b + 1);
  f.mend_with("read:1:EIO");
  f.cache().prefetch(f.client(), BlockId(64), 64);
  for (uint64_t b = 64; b < 128; ++b) EXPECT_EQ(f.read(b), b + 1);
  EXPECT_TRUE(f.errors().empty());
}

TEST_P(Readahead, discard_takes_blocks_in_flight_too) {
  CacheFixture f(options(1024));
  for (uint64_t b = 64; b < 128; ++b) f.store_directly(b, b + 1);
  f.cache().prefetch(f.client(), BlockId(64), 64);
  f.cache().discard(f.client(), BlockId(64), 64);
  EXPECT_EQ(f.cache().free_frames(), 1024u);
}

TEST_P(Readahead, a_stream_leaves_what_is_needed_all_the_time_in_memory) {
  Options made = options(1024);
  made.policy = "clock2q+";
  CacheFixture f(made);
  constexpr uint64_t kNeeded = 600, kStream = 1000;
  for (uint64_t b = 0; b < 20'000; ++b) f.blocks().set_contents(BlockId(b), true);
  Rng rng(3);
  uint64_t misses_of_needed = 0;
  for (uint64_t b = kStream; b < 19'000; ++b) {
    CounterDelta delta;
    f.read(rng.below(kNeeded));
    if (b > 9000) misses_of_needed += delta(Counter::shared_misses);
    f.read(b);
  }
  EXPECT_LE(misses_of_needed, 10u);
}

INSTANTIATE_TEST_SUITE_P(All, Readahead, testing::Values(kCombining, kDedicated, kPageSets), kind_name);

}  // namespace
}  // namespace spw::cache
