// Runs of neighbours that are pinned in one step.
#include <cstring>
#include <thread>

#include "cache/cache.h"
#include "cache_fixture.h"

namespace spw::cache {
namespace {

using telemetry::Counter;

class PinnedRunsTest : public testing::TestWithParam<Kind> {
 protected:
  static Options one_partition(uint32_t frames) { return cache::one_partition(frames, GetParam()); }
};

uint32_t pin_run(CacheFixture& f, uint64_t first, uint32_t count, Access access, Pin* pins) {
  return f.cache().pin_run(f.client(), BlockId(first), count, access, pins);
}

void fill(CacheFixture& f, const Pin* pins, uint32_t count, uint64_t first_value) {
  for (uint32_t i = 0; i < count; ++i)
    for (size_t at = 0; at < f.block_bytes(); at += 512) {
      const uint64_t value = first_value + i;
      std::memcpy(pins[i].data + at, &value, sizeof value);
    }
}

void unpin(CacheFixture& f, const Pin* pins, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) f.cache().unpin(f.client(), pins[i].frame);
}

// By runs, and block by block where there is none.
void overwrite(CacheFixture& f, uint64_t first, uint32_t count, uint64_t first_value) {
  Pin pins[kGroupBlocks];
  for (uint32_t done = 0; done < count;) {
    const uint32_t run = pin_run(f, first + done, count - done, Access::kOverwrite, pins);
    fill(f, pins, run, first_value + done);
    unpin(f, pins, run);
    if (run == 0) ASSERT_TRUE(f.write(first + done, first_value + done, Access::kOverwrite));
    done += run > 0 ? run : 1;
  }
}

TEST(PinnedRuns, overwritten_neighbours_come_in_one_step_and_are_not_read) {
  CacheFixture f(one_partition(256));
  for (uint64_t b = 0; b < 32; ++b) f.store_directly(b, 1000 + b);
  const uint64_t reads = f.plan().requests(store::Op::kRead);
  CounterDelta delta;
  Pin pins[32];
  ASSERT_EQ(pin_run(f, 0, 32, Access::kOverwrite, pins), 32u);
  for (const Pin& pin : pins) EXPECT_TRUE(pin.was_miss && pin.was_clean);
  fill(f, pins, 32, 7);
  unpin(f, pins, 32);
  EXPECT_EQ(f.plan().requests(store::Op::kRead), reads);
  EXPECT_EQ(delta(Counter::overwrites), 32u);
  EXPECT_EQ(delta(Counter::shared_misses), 32u);
  EXPECT_EQ(delta(Counter::bytes_dirtied), 32 * f.block_bytes());
  for (uint64_t b = 0; b < 32; ++b) EXPECT_EQ(f.read(b), 7 + b);
}

TEST(PinnedRuns, a_run_ends_where_blocks_that_are_there_begin) {
  CacheFixture f(one_partition(256));
  for (uint64_t b = 8; b < 12; ++b) ASSERT_TRUE(f.write(b, b));
  Pin pins[32];
  ASSERT_EQ(pin_run(f, 0, 32, Access::kOverwrite, pins), 8u);
  unpin(f, pins, 8);
  ASSERT_EQ(pin_run(f, 8, 24, Access::kOverwrite, pins), 4u);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_FALSE(pins[i].was_miss || pins[i].was_clean);
  unpin(f, pins, 4);
}

TEST(PinnedRuns, what_has_to_be_read_is_left_to_pin) {
  CacheFixture f(one_partition(256));
  for (uint64_t b = 0; b < 8; ++b) f.store_directly(b, b + 1);
  Pin pins[8];
  EXPECT_EQ(pin_run(f, 0, 8, Access::kRead, pins), 0u);
  for (uint64_t b = 0; b < 5; ++b) EXPECT_EQ(f.read(b), b + 1);
  ASSERT_EQ(pin_run(f, 0, 8, Access::kRead, pins), 5u);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(*reinterpret_cast<uint64_t*>(pins[i].data), i + 1);
  unpin(f, pins, 5);
}

TEST(PinnedRuns, a_run_that_is_missing_is_read_by_one_request) {
  CacheFixture f(one_partition(512));
  for (uint64_t b = 0; b < 64; ++b) f.store_directly(b, b + 1);
  ASSERT_TRUE(f.write(20, 21));
  const uint64_t reads = f.plan().requests(store::Op::kRead);
  CounterDelta delta;
  f.cache().miss_run(f.client(), BlockId(0), 20);
  EXPECT_EQ(f.read(0), 1u);
  Pin pins[32];
  ASSERT_EQ(pin_run(f, 1, 31, Access::kRead, pins), 20u);  // up to the one that was there, and that
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(*reinterpret_cast<uint64_t*>(pins[i].data), i + 2);
  unpin(f, pins, 20);
  EXPECT_EQ(f.plan().requests(store::Op::kRead), reads + 1);
  EXPECT_EQ(delta(Counter::shared_misses), 1u);
  EXPECT_EQ(delta(Counter::unit_fills), 19u);
  f.cache().miss_run(f.client(), BlockId(0), 20);  // which are there
  EXPECT_EQ(f.plan().requests(store::Op::kRead), reads + 1);
}

// So that they are few pieces to the device, in whatever order their frames were given up.
TEST(PinnedRuns, frames_of_a_run_lie_side_by_side) {
  constexpr uint32_t kRun = 32;
  CacheFixture f(one_partition(512));
  overwrite(f, 0, kRun, 7);
  for (uint64_t i = 0; i < kRun; ++i) f.cache().discard(f.client(), BlockId(i * 11 % kRun), 1);
  Pin pins[kRun];
  ASSERT_EQ(pin_run(f, 100 / kGroupBlocks * kGroupBlocks, kRun, Access::kOverwrite, pins), kRun);
  for (uint32_t i = 1; i < kRun; ++i)
    EXPECT_EQ(pins[i].data, pins[i - 1].data + f.block_bytes()) << "block " << i;
  unpin(f, pins, kRun);
}

// Others that hold blocks need frames as well.
TEST(PinnedRuns, a_run_takes_a_share_of_the_frames_at_most) {
  CacheFixture f(one_partition(64));
  Pin pins[kGroupBlocks];
  const uint32_t run = pin_run(f, 0, kGroupBlocks, Access::kOverwrite, pins);
  EXPECT_EQ(run, 64u / 8);
  unpin(f, pins, run);
}

TEST(PinnedRuns, there_is_none_while_all_frames_are_held) {
  CacheFixture f(one_partition(64));
  Pin held[64];
  for (uint32_t b = 0; b < 64; ++b)
    ASSERT_TRUE(f.cache().pin(f.client(), BlockId(1000 + b), Access::kRead, &held[b]).is_ok());
  Pin pins[8];
  EXPECT_EQ(pin_run(f, 0, 8, Access::kOverwrite, pins), 0u);
  unpin(f, held, 64);
  EXPECT_GT(pin_run(f, 0, 8, Access::kOverwrite, pins), 0u);
  unpin(f, pins, 8);
}

TEST(PinnedRuns, blocks_of_no_region_are_left_to_pin) {
  CacheFixture f(one_partition(256));
  Pin pins[8];
  EXPECT_EQ(pin_run(f, kBlocks, 8, Access::kOverwrite, pins), 0u);
}

TEST_P(PinnedRunsTest, more_than_fits_is_written_and_read_back) {
  CacheFixture f(one_partition(256));
  constexpr uint64_t kWritten = 4096;
  for (uint64_t turn = 0; turn < 3; ++turn)
    for (uint64_t b = 0; b < kWritten; b += 32) overwrite(f, b, 32, turn * kWritten + b);
  for (uint64_t b = 0; b < kWritten; ++b) ASSERT_EQ(f.read(b), 2 * kWritten + b);
  EXPECT_TRUE(f.errors().empty());
}

// Two threads overwrite the same groups by runs of different lengths: a block holds what one of them wrote, whole.
TEST_P(PinnedRunsTest, threads_overwrite_the_same_blocks) {
  CacheFixture f(one_partition(256));
  constexpr uint64_t kShared = 1024, kTurns = 40;
  const auto work = [&](uint64_t mark, uint32_t step) {
    Client* client = *f.cache().open_client();
    Pin pins[kGroupBlocks];
    for (uint64_t turn = 0; turn < kTurns; ++turn)
      for (uint64_t b = 0; b < kShared;) {
        const auto in_group = static_cast<uint32_t>(kGroupBlocks - b % kGroupBlocks);
        uint32_t run =
            f.cache().pin_run(*client, BlockId(b), std::min(step, in_group), Access::kOverwrite, pins);
        if (run == 0) {
          ASSERT_TRUE(f.cache().pin(*client, BlockId(b), Access::kOverwrite, pins).is_ok());
          run = 1;
        }
        // A word of each thread's own: nobody else has the right to write to it.
        for (uint32_t i = 0; i < run; ++i)
          reinterpret_cast<Atomic<uint64_t>*>(pins[i].data)[mark].store_relaxed(b + i + 1);
        for (uint32_t i = 0; i < run; ++i) f.cache().unpin(*client, pins[i].frame);
        b += run;
      }
    f.cache().close_client(client);
  };
  std::thread other(work, 1, 13);
  work(0, 32);
  other.join();
  f.cache().check_invariants();
  EXPECT_TRUE(f.errors().empty());
}

class NewRuns : public testing::Test {
 protected:
  static Options options(uint32_t frames, bool is_tuned = true) {
    Options made = one_partition(frames);
    made.tunes_fills = is_tuned;
    made.policy = "clock2q+";
    return made;
  }
};

TEST_F(NewRuns, new_blocks_come_along_with_a_program_that_writes_its_way_through) {
  CacheFixture f(options(1024));
  f.blocks().be_anonymous();
  CounterDelta delta;
  for (uint64_t b = 0; b < 640; ++b) ASSERT_TRUE(f.write(b, b + 1));
  EXPECT_LT(delta(Counter::shared_misses), 80u);
  EXPECT_EQ(delta(Counter::zero_fills), 640u);
  EXPECT_EQ(delta(Counter::bytes_dirtied), 640 * f.block_bytes());
  for (uint64_t b = 0; b < 640; ++b) ASSERT_EQ(f.read(b), b + 1);
}

TEST_F(NewRuns, a_new_block_here_and_there_comes_alone) {
  CacheFixture f(options(1024));
  f.blocks().be_anonymous();
  CounterDelta delta;
  for (uint64_t b = 0; b < 640; b += 3) ASSERT_TRUE(f.write(b, b + 1));
  EXPECT_EQ(delta(Counter::zero_fills), delta(Counter::shared_misses));
}

TEST_F(NewRuns, of_a_file_or_with_a_fixed_size_blocks_come_one_by_one) {
  for (const bool is_tuned : {true, false}) {
    CacheFixture f(options(1024, is_tuned));
    if (!is_tuned) f.blocks().be_anonymous();
    CounterDelta delta;
    for (uint64_t b = 0; b < 200; ++b) ASSERT_TRUE(f.write(b, b + 1));
    EXPECT_EQ(delta(Counter::shared_misses), 200u);
  }
}

// The frames of those that came along held others' bytes before.
TEST_F(NewRuns, what_came_along_is_zero_and_need_not_be_written) {
  CacheFixture f(options(256));
  f.blocks().be_anonymous();
  for (uint64_t b = 4096; b < 8192; ++b) ASSERT_TRUE(f.write(b, b));
  ASSERT_TRUE(f.cache().sync(f.client(), BlockId(0), kBlocks));
  CounterDelta delta;
  for (uint64_t b = 0; b < 4096; ++b) ASSERT_EQ(f.read(b), 0u);
  ASSERT_TRUE(f.cache().sync(f.client(), BlockId(0), kBlocks));
  EXPECT_LT(delta(Counter::shared_misses), 4096u / 4);
  EXPECT_EQ(delta(Counter::writebacks), 0u);
}

TEST_F(NewRuns, what_was_written_once_is_read_and_comes_not_as_zeros) {
  CacheFixture f(options(256));
  f.blocks().be_anonymous();
  for (uint64_t turn = 1; turn < 4; ++turn)
    for (uint64_t b = 0; b < 4096; b += turn == 1 ? 2 : 1) ASSERT_TRUE(f.write(b, turn * 4096 + b));
  for (uint64_t b = 0; b < 4096; ++b) ASSERT_EQ(f.read(b), 3 * 4096 + b);
}

// As where there are more places to write to than memory for what comes along.
TEST_F(NewRuns, runs_get_short_where_what_came_along_goes_unused) {
  CacheFixture f(options(1024));
  f.blocks().be_anonymous();
  constexpr uint64_t kOthers = 20'000, kLast = 40'000;
  const auto misses_of_a_walk = [&](uint64_t first) {
    CounterDelta delta;
    for (uint64_t b = first; b < first + kGroupBlocks; ++b) EXPECT_TRUE(f.write(b, b));
    return delta(Counter::shared_misses);
  };
  EXPECT_LT(misses_of_a_walk(kLast), 12u);
  for (uint64_t b = 0; b < 12'000; ++b) f.blocks().set_contents(BlockId(kOthers + b), true);
  for (uint64_t place = 0, other = kOthers; place < 10; ++place) {
    for (uint64_t i = 0; i < 5; ++i)
      ASSERT_TRUE(f.write(place * kGroupBlocks + i, 1));  // the fifth comes with three
    for (uint64_t i = 0; i < 1200; ++i) f.read(other++);
    for (uint64_t i = 4; i > 0; --i)
      f.read(place * kGroupBlocks + i);  // so that there is something before the next
    ASSERT_TRUE(f.write(place * kGroupBlocks + 5, 1));
  }
  EXPECT_GT(misses_of_a_walk(kLast + 10 * kGroupBlocks), 24u);
}

TEST_F(NewRuns, threads_that_write_the_same_new_blocks_lose_nothing) {
  CacheFixture f(options(256));
  f.blocks().be_anonymous();
  constexpr uint64_t kShared = 4096;
  const auto work = [&](uint64_t mark) {
    Client* client = *f.cache().open_client();
    for (uint64_t b = 0; b < kShared; ++b) {
      Pin pin;
      ASSERT_TRUE(f.cache().pin(*client, BlockId(b), Access::kWrite, &pin).is_ok());
      reinterpret_cast<Atomic<uint64_t>*>(pin.data)[mark].store_relaxed(b + 1);
      f.cache().unpin(*client, pin.frame);
      if (b % 512 == 511) f.cache().discard(*client, BlockId(kShared + mark * kShared), kShared);
    }
    f.cache().close_client(client);
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (uint64_t b = 0; b < kShared; ++b) {
    Pin pin;
    ASSERT_TRUE(f.cache().pin(f.client(), BlockId(b), Access::kRead, &pin).is_ok());
    const auto* words = reinterpret_cast<const uint64_t*>(pin.data);
    ASSERT_TRUE(words[0] == b + 1 && words[1] == b + 1 && words[2] == 0);
    f.cache().unpin(f.client(), pin.frame);
  }
  EXPECT_TRUE(f.errors().empty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, PinnedRunsTest, testing::Values(kCombining, kDedicated, kPageSets),
                         kind_name);

}  // namespace
}  // namespace spw::cache
