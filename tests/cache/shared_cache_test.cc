#include <thread>

#include "../thread_states.h"
#include "cache/cache.h"
#include "cache/partition/touch_ring.h"
#include "cache_fixture.h"

namespace spw::cache {
namespace {

using telemetry::Counter;

class SharedCacheTest : public testing::TestWithParam<Kind> {
 protected:
  static Options small_cache(uint32_t frames) { return cache::small_cache(frames, GetParam()); }
  static Options one_partition(uint32_t frames) { return cache::one_partition(frames, GetParam()); }
};

TEST_P(SharedCacheTest, a_block_never_written_reads_as_zeros_without_io) {
  CacheFixture f(small_cache(64));
  CounterDelta delta;
  EXPECT_EQ(f.read(7), 0u);
  EXPECT_EQ(delta(Counter::zero_fills), 1u);
  EXPECT_EQ(f.plan().requests(store::Op::kRead), 0u);
}

TEST_P(SharedCacheTest, a_second_pin_is_a_hit) {
  CacheFixture f(small_cache(64));
  f.read(7);
  CounterDelta delta;
  f.read(7);
  EXPECT_EQ(delta(Counter::shared_hits), 1u);
  EXPECT_EQ(delta(Counter::shared_misses), 0u);
}

TEST_P(SharedCacheTest, contents_survive_eviction) {
  CacheFixture f(small_cache(64));
  for (uint64_t b = 0; b < 1000; ++b) ASSERT_TRUE(f.write(b, b + 1));
  for (uint64_t b = 0; b < 1000; ++b) EXPECT_EQ(f.read(b), b + 1);
}

TEST_P(SharedCacheTest, a_clean_victim_is_not_written) {
  CacheFixture f(small_cache(64));
  for (uint64_t b = 0; b < 1000; ++b) f.store_directly(b, b);
  uint64_t before = f.plan().requests(store::Op::kWrite);
  CounterDelta delta;
  for (uint64_t b = 0; b < 1000; ++b) EXPECT_EQ(f.read(b), b);
  EXPECT_GE(delta(Counter::evictions), 1000u - 64);
  EXPECT_EQ(f.plan().requests(store::Op::kWrite), before);
}

TEST_P(SharedCacheTest, overwrite_does_not_read) {
  CacheFixture f(small_cache(64));
  f.store_directly(3, 33);
  uint64_t before = f.plan().requests(store::Op::kRead);
  ASSERT_TRUE(f.write(3, 44, Access::kOverwrite));
  EXPECT_EQ(f.plan().requests(store::Op::kRead), before);
  EXPECT_EQ(f.read(3), 44u);
}

TEST_P(SharedCacheTest, dirty_neighbours_are_written_in_one_request) {
  CacheFixture f(one_partition(256));
  for (uint64_t b = 64; b < 128; ++b) ASSERT_TRUE(f.write(b, b));
  ASSERT_TRUE(f.cache().sync(f.client(), BlockId(64), 64));
  EXPECT_EQ(f.plan().requests(store::Op::kWrite), 1u);
  for (uint64_t b = 64; b < 128; ++b) EXPECT_EQ(f.stored(b), b);
}

// Pairs of neighbours that are dirty, and evicted one after the other: those of a pair leave together.
TEST(Eviction, what_is_written_along_with_a_victim_goes_with_it) {
  CacheFixture f(one_partition(256));
  constexpr uint64_t kPairs = 2000, kApart = 16;
  Rng rng(1);
  for (uint64_t i = 0; i < kPairs; ++i) {
    const uint64_t first = rng.below(kBlocks / kApart) * kApart;
    ASSERT_TRUE(f.write(first, i));
    ASSERT_TRUE(f.write(first + 1, i));
    f.read(rng.below(kBlocks / kApart) * kApart + kApart / 2);
  }
  uint64_t alone = 0;
  for (uint64_t first = 0; first < kBlocks; first += kApart)
    alone += f.cache().is_resident(BlockId(first)) != f.cache().is_resident(BlockId(first + 1));
  EXPECT_LE(alone, 256u / 16) << "of pairs half of which is cached";
}

// Groups with gaps, which got their blocks in turn: the first victims are of all groups.
uint32_t groups_cached_in_part(bool is_buffered_file, const char* policy, size_t queue_depth) {
  constexpr uint32_t kFrames = 2048, kGroups = 2 * kFrames / kGroupBlocks;
  Options options = one_partition(kFrames);
  options.policy = policy;
  options.queue_depth = queue_depth;
  CacheFixture f(options);
  if (is_buffered_file) f.blocks().be_buffered_file();
  for (uint64_t place = 0; place < kGroupBlocks; place += 2)
    for (uint64_t group = 0; group < kGroups; ++group)
      EXPECT_TRUE(f.write(group * kGroupBlocks + place, place));
  for (uint64_t group = 0; group < kGroups; ++group)
    f.read(group * kGroupBlocks + kGroupBlocks - 2);  // some use
  for (uint64_t other = 0; other < kFrames / 4; ++other)
    EXPECT_TRUE(f.write((kGroups + 1) * kGroupBlocks + 2 * other, 0));
  uint32_t in_part = 0;
  for (uint64_t group = 0; group < kGroups; ++group) {
    uint64_t cached = 0;
    for (uint64_t place = 0; place < kGroupBlocks; place += 2)
      cached += f.cache().is_resident(BlockId(group * kGroupBlocks + place));
    in_part += cached > 0 && cached < kGroupBlocks / 2;
  }
  for (uint64_t group = 0; group < kGroups; ++group)
    for (uint64_t place = 0; place < kGroupBlocks; place += 2)
      EXPECT_EQ(f.read(group * kGroupBlocks + place), place);
  return in_part;
}

TEST(Eviction, what_is_dirty_in_a_group_of_a_buffered_file_goes_together) {
  constexpr size_t kLessThanAGroup = 20;  // of which every second block is dirty
  for (const char* policy : {"clock", "clock2q+"})
    for (const size_t queue_depth : {size_t{64}, kLessThanAGroup}) {
      SCOPED_TRACE(std::string(policy) + ", a queue of " + std::to_string(queue_depth));
      EXPECT_GE(groups_cached_in_part(false, policy, queue_depth), 48u) << "of 64: else this shows nothing";
      EXPECT_LE(groups_cached_in_part(true, policy, queue_depth), 2u);
    }
}

TEST_P(SharedCacheTest, evict_skips_a_pinned_block) {
  CacheFixture f(small_cache(64));
  f.store_directly(5, 55);
  Pin pin;
  ASSERT_TRUE(f.cache().pin(f.client(), BlockId(5), Access::kRead, &pin));
  for (uint64_t b = 100; b < 1000; ++b) f.read(b);
  uint64_t value;
  std::memcpy(&value, pin.data, sizeof value);
  EXPECT_EQ(value, 55u);
  CounterDelta delta;
  EXPECT_EQ(f.read(5), 55u);
  EXPECT_EQ(delta(Counter::shared_hits), 1u);
  f.cache().unpin(f.client(), pin.frame);
}

TEST_P(SharedCacheTest, a_block_marked_dirty_while_pinned_for_read_is_written) {
  CacheFixture f(small_cache(64));
  f.store_directly(5, 55);
  Pin pin;
  ASSERT_TRUE(f.cache().pin(f.client(), BlockId(5), Access::kRead, &pin));
  uint64_t value = 66;
  for (size_t i = 0; i < 4096; i += 512) std::memcpy(pin.data + i, &value, sizeof value);
  f.cache().mark_dirty(f.client(), pin.frame);
  f.cache().unpin(f.client(), pin.frame);
  for (uint64_t b = 100; b < 1000; ++b) f.read(b);
  EXPECT_EQ(f.read(5), 66u);
}

TEST_P(SharedCacheTest, sync_writes_a_pinned_block_and_leaves_it_dirty) {
  CacheFixture f(small_cache(64));
  Pin pin;
  ASSERT_TRUE(f.cache().pin(f.client(), BlockId(5), Access::kWrite, &pin));
  uint64_t value = 1;
  std::memcpy(pin.data, &value, sizeof value);
  ASSERT_TRUE(f.cache().sync(f.client(), BlockId(0), 64));
  EXPECT_EQ(f.stored(5), 1u);
  value = 2;
  std::memcpy(pin.data, &value, sizeof value);  // without a word to the cache
  ASSERT_TRUE(f.cache().sync(f.client(), BlockId(0), 64));
  EXPECT_EQ(f.stored(5), 2u);
  f.cache().unpin(f.client(), pin.frame);
}

// They stay dirty, so that what came along with one would come along with each.
TEST_P(SharedCacheTest, sync_writes_each_of_many_pinned_blocks_once) {
  CacheFixture f(one_partition(256));
  Pin pins[64];
  for (uint64_t b = 0; b < 64; ++b) {
    ASSERT_TRUE(f.cache().pin(f.client(), BlockId(64 + b), Access::kWrite, &pins[b]));
    std::memcpy(pins[b].data, &b, sizeof b);
  }
  CounterDelta delta;
  ASSERT_TRUE(f.cache().sync(f.client(), BlockId(0), 256));
  EXPECT_EQ(delta(Counter::writebacks), 64u);
  for (uint64_t b = 0; b < 64; ++b) EXPECT_EQ(f.stored(64 + b), b);
  for (const Pin& pin : pins) f.cache().unpin(f.client(), pin.frame);
}

TEST_P(SharedCacheTest, sync_of_a_clean_range_writes_nothing_but_syncs) {
  CacheFixture f(small_cache(64));
  f.read(1);
  ASSERT_TRUE(f.cache().sync(f.client(), BlockId(0), 1000));
  EXPECT_EQ(f.plan().requests(store::Op::kWrite), 0u);
  EXPECT_EQ(f.plan().requests(store::Op::kSync), 1u);
}

TEST_P(SharedCacheTest, sync_of_a_long_range_writes_its_groups_and_no_others) {
  CacheFixture f(one_partition(512));
  for (uint64_t b = 0; b < 400; ++b) ASSERT_TRUE(f.write(b, b + 1));
  ASSERT_TRUE(f.cache().sync(f.client(), BlockId(70), 200));
  EXPECT_EQ(f.stored(63), 0u);
  for (uint64_t b = 70; b < 270; ++b) EXPECT_EQ(f.stored(b), b + 1);
  EXPECT_EQ(f.stored(320), 0u);
}

TEST_P(SharedCacheTest, discard_drops_dirty_blocks_without_a_write) {
  for (uint64_t count : {64u, 200u}) {
    CacheFixture f(one_partition(256));
    for (uint64_t b = 0; b < count; ++b) ASSERT_TRUE(f.write(b, b + 1));
    f.cache().discard(f.client(), BlockId(0), count);
    EXPECT_EQ(f.cache().free_frames(), 256u);
    EXPECT_EQ(f.plan().requests(store::Op::kWrite), 0u);
    for (uint64_t b = 0; b < count; ++b) EXPECT_EQ(f.read(b), 0u);
  }
}

TEST_P(SharedCacheTest, discard_of_a_pinned_block_zeroes_it_and_keeps_it_dirty) {
  CacheFixture f(small_cache(64));
  ASSERT_TRUE(f.write(5, 55));
  Pin pin;
  ASSERT_TRUE(f.cache().pin(f.client(), BlockId(5), Access::kWrite, &pin));
  f.cache().discard(f.client(), BlockId(0), 64);
  EXPECT_EQ(f.read(5), 0u);
  uint64_t value = 77;  // the range has been handed out again; a SATC writes without asking
  for (size_t i = 0; i < 4096; i += 512) std::memcpy(pin.data + i, &value, sizeof value);
  f.cache().unpin(f.client(), pin.frame);
  for (uint64_t b = 100; b < 1000; ++b) f.read(b);
  EXPECT_EQ(f.read(5), 77u);
}

TEST_P(SharedCacheTest, all_frames_pinned_waits_and_then_errs) {
  Options options = small_cache(64);
  options.frame_wait_ns_max = 50'000'000;
  CacheFixture f(options);
  std::vector<Pin> pins(64);
  for (uint64_t b = 0; b < 64; ++b)
    ASSERT_TRUE(f.cache().pin(f.client(), BlockId(b), Access::kRead, &pins[b]));
  Pin one_more;
  Status status = f.cache().pin(f.client(), BlockId(99), Access::kRead, &one_more);
  EXPECT_EQ(status.error(), EBUSY);
  EXPECT_EQ(f.errors().size(), 1u);
  for (Pin& pin : pins) f.cache().unpin(f.client(), pin.frame);
  EXPECT_TRUE(f.cache().pin(f.client(), BlockId(99), Access::kRead, &one_more));
  f.cache().unpin(f.client(), one_more.frame);
}

TEST_P(SharedCacheTest, a_waiting_pin_goes_on_when_a_frame_is_let_go) {
  CacheFixture f(small_cache(64));
  std::vector<Pin> pins(64);
  for (uint64_t b = 0; b < 64; ++b)
    ASSERT_TRUE(f.cache().pin(f.client(), BlockId(b), Access::kRead, &pins[b]));
  std::thread other([&] {
    Client* client = *f.cache().open_client();
    Pin pin;
    EXPECT_TRUE(f.cache().pin(*client, BlockId(99), Access::kRead, &pin));
    f.cache().unpin(*client, pin.frame);
    f.cache().close_client(client);
  });
  tests::wait_until_others_sleep();
  for (Pin& pin : pins) f.cache().unpin(f.client(), pin.frame);
  other.join();
}

TEST_P(SharedCacheTest, a_read_error_names_block_store_and_offset) {
  CacheFixture f(small_cache(64), "read:1:EIO");
  f.blocks().set_contents(BlockId(5), true);
  Pin pin;
  Status status = f.cache().pin(f.client(), BlockId(5), Access::kRead, &pin);
  EXPECT_EQ(status.error(), EIO);
  EXPECT_NE(status.message().find("block 5 from memory"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("offset 20480"), std::string::npos) << status.message();
  EXPECT_EQ(f.errors().size(), 1u);
  EXPECT_EQ(f.cache().free_frames(), 64u);
  EXPECT_EQ(f.read(5), 0u);  // the disk is well again
}

TEST_P(SharedCacheTest, a_block_of_no_region_is_an_error) {
  CacheFixture f(small_cache(64));
  Pin pin;
  EXPECT_EQ(f.cache().pin(f.client(), BlockId(kBlocks), Access::kRead, &pin).error(), EFAULT);
}

TEST_P(SharedCacheTest, a_full_disk_keeps_blocks_until_there_is_space) {
  Options options = small_cache(64);
  options.frame_wait_ns_max = 5'000'000'000;
  CacheFixture f(options, "write:1+:ENOSPC");
  std::thread cure([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    f.plan().clear();
  });
  for (uint64_t b = 0; b < 500; ++b) ASSERT_TRUE(f.write(b, b + 1));
  cure.join();
  for (uint64_t b = 0; b < 500; ++b) EXPECT_EQ(f.read(b), b + 1);
  EXPECT_EQ(f.errors().size(), 0u);
}

TEST_P(SharedCacheTest, writes_that_take_longer_than_a_pin_waits_are_no_error) {
  Options options = small_cache(64);
  options.frame_wait_ns_max = 20'000'000;
  CacheFixture f(options, "write:1+:delay:100000");
  for (uint64_t b = 0; b < 96; ++b) ASSERT_TRUE(f.write(b, b + 1));
  f.plan().clear();
  for (uint64_t b = 0; b < 96; ++b) EXPECT_EQ(f.read(b), b + 1);
  EXPECT_EQ(f.errors().size(), 0u);
}

TEST_P(SharedCacheTest, a_disk_that_stays_full_is_an_error_that_names_it) {
  Options options = small_cache(64);
  options.frame_wait_ns_max = 50'000'000;
  CacheFixture f(options, "write:1+:ENOSPC");
  Status status;
  uint64_t written = 0;
  while (status && written < 500) status = f.write(written++, 1);
  EXPECT_EQ(status.error(), ENOSPC);
  EXPECT_NE(status.message().find("memory"), std::string::npos) << status.message();
  EXPECT_EQ(written, 65u);
  ASSERT_EQ(f.errors().size(), 1u);
  for (uint64_t b = 0; b < 64; ++b) EXPECT_EQ(f.read(b), 1u);
  f.plan().clear();
}

TEST_P(SharedCacheTest, sync_reports_a_failed_write_and_the_block_stays_dirty) {
  CacheFixture f(small_cache(64), "write:1:EIO");
  ASSERT_TRUE(f.write(5, 55));
  EXPECT_EQ(f.cache().sync(f.client(), BlockId(0), 64).error(), EIO);
  EXPECT_EQ(f.stored(5), 0u);
  EXPECT_TRUE(f.cache().sync(f.client(), BlockId(0), 64));
  EXPECT_EQ(f.stored(5), 55u);
}

TEST_P(SharedCacheTest, sync_reports_a_failed_write_though_later_ones_succeed) {
  CacheFixture f(one_partition(256), "write:1:EIO");
  for (uint64_t b = 0; b < 4; ++b) ASSERT_TRUE(f.write(b * 2, b + 1));  // no neighbours: a write for each
  EXPECT_EQ(f.cache().sync(f.client(), BlockId(0), 64).error(), EIO);
  EXPECT_TRUE(f.cache().sync(f.client(), BlockId(0), 64));
  for (uint64_t b = 0; b < 4; ++b) EXPECT_EQ(f.stored(b * 2), b + 1);
}

// Runs of four blocks, of every ten.
std::function<BlockRun()> runs_up_to(uint64_t end) {
  return [next = uint64_t{0}, end]() mutable -> BlockRun {
    const uint64_t first = std::exchange(next, next + 10);
    return first < end ? BlockRun{BlockId(first), 4} : BlockRun();
  };
}

TEST_P(SharedCacheTest, a_flush_in_two_steps_writes_its_runs_and_no_others) {
  CacheFixture f(small_cache(4096));
  for (uint64_t b = 0; b < 600; ++b)
    if (b % 10 < 4 || b % 10 == 6)
      ASSERT_TRUE(f.write(b, b + 1));  // gaps, so that none goes along with its neighbours
  Flushing flushing;
  f.cache().begin_flush(f.client(), runs_up_to(600), &flushing);
  ASSERT_TRUE(f.cache().end_flush(f.client(), &flushing));
  EXPECT_TRUE(flushing.partitions.empty());
  for (uint64_t b = 0; b < 600; ++b) {
    EXPECT_EQ(f.stored(b), b % 10 < 4 ? b + 1 : 0) << b;
    EXPECT_EQ(f.cache().is_dirty(BlockId(b)), b % 10 == 6) << b;
  }
}

TEST_P(SharedCacheTest, a_flush_in_two_steps_reports_a_write_that_failed) {
  CacheFixture f(small_cache(4096), "write:2:EIO");
  for (uint64_t b = 0; b < 600; ++b) ASSERT_TRUE(f.write(b, b + 1));
  for (const int error : {EIO, 0}) {
    Flushing flushing;
    f.cache().begin_flush(f.client(), runs_up_to(600), &flushing);
    EXPECT_EQ(f.cache().end_flush(f.client(), &flushing).error(), error);
  }
  for (uint64_t b = 0; b < 600; b += 10) EXPECT_EQ(f.stored(b), b + 1);
}

TEST_P(SharedCacheTest, a_lower_limit_is_waited_for_where_blocks_have_to_be_written_first) {
  CacheFixture f(one_partition(512));
  for (uint64_t b = 0; b < 512; ++b) ASSERT_TRUE(f.write(b, b + 1));
  CounterDelta delta;
  f.cache().set_frame_limit(64);
  EXPECT_TRUE(f.cache().evict_to_limit(f.client()));
  EXPECT_EQ(delta(Counter::evictions), 512u - 64);
  for (uint64_t b = 0; b < 512; ++b) EXPECT_EQ(f.read(b), b + 1);
}

TEST_P(SharedCacheTest, a_lower_limit_that_pins_forbid_is_kept_once_they_are_gone) {
  Options options = one_partition(128);
  options.frame_wait_ns_max = 20'000'000;
  CacheFixture f(options);
  std::vector<Pin> pins(128);
  for (uint64_t b = 0; b < 128; ++b)
    ASSERT_TRUE(f.cache().pin(f.client(), BlockId(b), Access::kRead, &pins[b]));
  f.cache().set_frame_limit(64);
  Status status = f.cache().evict_to_limit(f.client());
  EXPECT_EQ(status.error(), ETIMEDOUT);
  EXPECT_NE(status.message().find("pinned"), std::string::npos) << status.message();
  EXPECT_EQ(f.cache().frame_limit(), 64u);
  for (Pin& pin : pins) f.cache().unpin(f.client(), pin.frame);
  CounterDelta delta;
  EXPECT_TRUE(f.cache().evict_to_limit(f.client()));
  EXPECT_EQ(delta(Counter::evictions), 64u);
  EXPECT_EQ(f.errors().size(), 0u);
}

TEST_P(SharedCacheTest, a_lower_limit_that_a_full_disk_forbids_is_an_error_that_names_it) {
  Options options = one_partition(128);
  options.frame_wait_ns_max = 50'000'000;
  CacheFixture f(options, "write:1+:ENOSPC");
  for (uint64_t b = 0; b < 128; ++b) ASSERT_TRUE(f.write(b, b + 1));
  f.cache().set_frame_limit(64);
  Status status = f.cache().evict_to_limit(f.client());
  EXPECT_EQ(status.error(), ETIMEDOUT);
  EXPECT_NE(status.message().find("memory"), std::string::npos) << status.message();
  f.plan().clear();
  EXPECT_TRUE(f.cache().sync(f.client(), BlockId(0), 128));
  EXPECT_TRUE(f.cache().evict_to_limit(f.client()));
  for (uint64_t b = 0; b < 128; ++b) EXPECT_EQ(f.read(b), b + 1);
}

TEST_P(SharedCacheTest, each_io_may_fail_once_without_losing_anything_else) {
  for (int n = 1; n <= 60; ++n) {
    std::string nth = std::to_string(n);
    CacheFixture f(small_cache(64), "read:" + nth + ":EIO,write:" + nth + ":EIO");
    std::vector<uint64_t> expected(300);
    Rng rng(static_cast<uint64_t>(n));
    for (int i = 0; i < 600; ++i) {
      uint64_t block = rng.below(expected.size());
      Pin pin;
      Status status = f.cache().pin(f.client(), BlockId(block), Access::kWrite, &pin);
      if (!status) continue;
      uint64_t value;
      std::memcpy(&value, pin.data, sizeof value);
      ASSERT_EQ(value, expected[block]);
      value = rng.next();
      for (size_t at = 0; at < 4096; at += 512) std::memcpy(pin.data + at, &value, sizeof value);
      expected[block] = value;
      f.cache().unpin(f.client(), pin.frame);
    }
    f.plan().clear();
    for (uint64_t b = 0; b < expected.size(); ++b) ASSERT_EQ(f.read(b), expected[b]);
  }
}

TEST_P(SharedCacheTest, options_are_checked_with_a_clear_message) {
  auto unused = store::MemoryStore::create(kMiB);
  ASSERT_TRUE(unused.is_ok());
  IdentityBlocks none(**unused, 12);
  auto message = [&](Options options) {
    auto made = SharedCache::create(options, none, nullptr, nullptr);
    return made.is_ok() ? std::string() : made.status().message();
  };
  EXPECT_NE(message(small_cache(3)).find("too few"), std::string::npos);
  Options options = small_cache(1000);
  options.policy = "no-such";
  EXPECT_NE(message(options).find("\"no-such\" (there are: clock"), std::string::npos) << message(options);
  options = small_cache(1000);
  options.partitions = 3;
  EXPECT_NE(message(options).find("power of two"), std::string::npos);
  options.partitions = 32;
  EXPECT_NE(message(options).find("64 frames each"), std::string::npos);
  options = small_cache(1000);
  options.block_shift = 11;
  EXPECT_NE(message(options).find("4 KiB to 2 MiB"), std::string::npos);
}

TEST_P(SharedCacheTest, frames_never_used_stay_free) {
  CacheFixture f(one_partition(1000));
  for (uint64_t b = 0; b < 10; ++b) f.read(b);
  EXPECT_EQ(f.cache().free_frames(), 990u);
  EXPECT_EQ(f.cache().peak_frames(), 10u);
}

TEST_P(SharedCacheTest, lru_keeps_what_hits_use_again_and_again) {
  Options options = one_partition(64);
  options.policy = "lru";
  CacheFixture f(options);
  for (uint64_t b = 0; b < 10; ++b) f.store_directly(b, b);
  CounterDelta delta;
  for (uint64_t b = 100; b < 1000; ++b) {
    EXPECT_EQ(f.read(b % 10), b % 10);
    f.read(b);
  }
  EXPECT_EQ(delta(Counter::fills), 10u) << "the ten hot blocks were read once";
  EXPECT_EQ(delta(Counter::touch_events_dropped), 0u);
}

TEST_P(SharedCacheTest, lru_evicts_in_the_order_of_last_use) {
  Options options = one_partition(64);
  options.policy = "lru";
  CacheFixture f(options);
  for (uint64_t b = 0; b < 64; ++b) f.store_directly(b, b);
  for (uint64_t b = 0; b < 64; ++b) f.read(b);
  for (uint64_t b = 32; b-- > 0;) f.read(b);  // hits; 0 is the last
  for (uint64_t b = 0; b < 40; ++b) f.read(1000 + b);
  CounterDelta delta;
  for (uint64_t b = 0; b < 16; ++b) f.read(b);
  EXPECT_EQ(delta(Counter::fills), 0u) << "of 64, the forty that go are 32 to 63 and 31 to 24";
}

TEST_P(SharedCacheTest, ends_of_uses_that_nobody_comes_for_are_overwritten_and_counted) {
  Options options = one_partition(64);
  options.policy = "lru";
  CacheFixture f(options);
  for (uint64_t b = 0; b < 64; ++b) f.read(b);
  CounterDelta delta;
  constexpr uint64_t kHits = 1000;
  for (uint64_t i = 0; i < kHits; ++i) f.read(i % 8);  // the owner has no reason to look
  EXPECT_EQ(delta(Counter::touch_events_dropped), 0u);
  f.read(100);
  EXPECT_GE(delta(Counter::touch_events_dropped), kHits - TouchRing::kNotes);
  EXPECT_LE(delta(Counter::touch_events_dropped), kHits);
}

INSTANTIATE_TEST_SUITE_P(All, SharedCacheTest, testing::Values(kCombining, kDedicated, kPageSets), kind_name);

}  // namespace
}  // namespace spw::cache
