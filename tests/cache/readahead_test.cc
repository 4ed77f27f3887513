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

// What it skips is never used, and would soon be all that may be read ahead.
TEST_P(Readahead, a_stream_with_gaps_is_read_ahead_to_its_end) {
  CacheFixture f(options(1024));
  for (uint64_t b = 0; b < 20'000; ++b) f.blocks().set_contents(BlockId(b), true);
  Rng rng(3);
  CounterDelta delta;
  uint64_t used = 0;
  for (uint64_t b = 0; b < 20'000; b += 1 + rng.below(8), ++used) f.read(b);
  EXPECT_GT(used, 4000u);
  EXPECT_LT(delta(Counter::fills), used / 10);
  f.cache().check_invariants();
}

// Reads aligned fours at random places of the first 8000 blocks, from
// which the cache is to learn that they belong together.
class TunedFills : public testing::TestWithParam<Kind> {
 protected:
  static constexpr uint64_t kUsed = 8000, kTogether = 4;
  static Options options() {
    Options made = one_partition(1024, GetParam());
    made.tunes_fills = true;
    return made;
  }
  static void fill(CacheFixture& f) {
    for (uint64_t b = 0; b < kUsed; ++b) f.store_directly(b, b + 1);
  }
  static void read_fours(CacheFixture& f, int fours) {
    Rng rng(7);
    for (int i = 0; i < fours; ++i) {
      const uint64_t first = rng.below(kUsed / kTogether) * kTogether;
      for (uint64_t b = first; b < first + kTogether; ++b) ASSERT_EQ(f.read(b), b + 1);
    }
  }
};

TEST_P(TunedFills, what_is_needed_together_comes_in_one_request) {
  CacheFixture f(options());
  fill(f);
  read_fours(f, 1000);
  CounterDelta delta;
  const uint64_t before = f.plan().requests(store::Op::kRead);
  read_fours(f, 1000);
  const uint64_t requests = f.plan().requests(store::Op::kRead) - before;
  // One in eight is read in two halves, to see. Some are there.
  EXPECT_LE(requests, 1200u);
  EXPECT_GE(requests, 800u);
  EXPECT_LE(delta(Counter::shared_misses),
            requests);  // page sets may have no room in a set for one of the blocks
  EXPECT_GE(delta(Counter::shared_misses), requests * 9 / 10);
  EXPECT_EQ(delta(Counter::fills) + delta(Counter::unit_fills), delta(Counter::evictions));
}

TEST_P(TunedFills, reads_at_random_places_bring_one_block) {
  CacheFixture f(options());
  fill(f);
  CounterDelta delta;
  Rng rng(7);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t block = rng.below(kUsed);
    ASSERT_EQ(f.read(block), block + 1);
  }
  EXPECT_LT(delta(Counter::unit_fills), 200u);
}

TEST_P(TunedFills, a_unit_that_cannot_be_read_is_no_error_as_long_as_the_wanted_block_can) {
  CacheFixture f(options());
  fill(f);
  read_fours(f, 1000);
  CounterDelta delta;
  const uint64_t fails = f.plan().requests(store::Op::kRead) + 1;
  f.mend_with("read:" + std::to_string(fails) + ":EIO");
  read_fours(f, 100);
  EXPECT_GT(delta(Counter::unit_fills), 0u);
  EXPECT_GT(f.plan().requests(store::Op::kRead), fails);
  EXPECT_TRUE(f.errors().empty());
}

// Every fourth block, the third of its four, was never written: it
// cuts the unit, and what is wanted comes all the same.
TEST_P(TunedFills, blocks_without_contents_cut_units) {
  CacheFixture f(options());
  fill(f);
  read_fours(f, 1000);
  for (uint64_t b = 2; b < kUsed; b += kTogether) f.blocks().set_contents(BlockId(b), false);
  f.cache().discard(f.client(), BlockId(0), kUsed);
  CounterDelta delta;
  for (uint64_t b = 3; b < 200; b += kTogether) ASSERT_EQ(f.read(b), b + 1);
  EXPECT_LT(delta(Counter::unit_fills), 20u);  // but where units have grown to eight
  for (uint64_t b = 1; b < 400; b += kTogether) ASSERT_EQ(f.read(b), b + 1);
  EXPECT_GT(delta(Counter::unit_fills), 50u);
}

TEST_P(TunedFills, blocks_that_came_along_take_stores_and_are_written) {
  CacheFixture f(options());
  fill(f);
  read_fours(f, 1000);
  for (uint64_t b = 0; b < kUsed; ++b) ASSERT_TRUE(f.write(b, b + 100));
  for (uint64_t b = 0; b < kUsed; ++b) ASSERT_EQ(f.read(b), b + 100);
}

INSTANTIATE_TEST_SUITE_P(All, TunedFills, testing::Values(kCombining, kDedicated, kPageSets), kind_name);
INSTANTIATE_TEST_SUITE_P(All, Readahead, testing::Values(kCombining, kDedicated, kPageSets), kind_name);

}  // namespace
}  // namespace spw::cache
