// Page sets behind the cache: where blocks go, who leaves, what happens when a set is all pinned or all dirty.
#include <thread>

#include "cache/page_sets/page_set_table.h"
#include "cache_fixture.h"

namespace spw::cache {
namespace {

using telemetry::Counter;

PageSetTable table_of(uint32_t frames, uint32_t partitions) {
  const FrameShares shares(frames, partitions, kBlocksASet);
  return {SetRule::kNrLfu, true, shares, std::move(*PageSetTable::map_memory(shares))};
}

TEST(PageSetTable, blocks_of_a_range_are_spread_evenly) {
  for (uint32_t partitions : {1u, 4u})
    for (uint32_t frames : {64u, 512u, 1000u, 4096u}) {
      if (frames / partitions < 64) continue;
      const PageSetTable table = table_of(frames, partitions);
      for (uint64_t first : {uint64_t{0}, uint64_t{12345} << 6, (uint64_t{1} << 34) - 4096}) {
        std::vector<unsigned> homes(table.shares().frame_count() / kBlocksASet);
        for (uint64_t b = first; b < first + table.shares().frame_count(); ++b) {
          const BlockId block(b);
          const PartitionId partition = table.map().of(block);
          const uint32_t set = partition.value * (table.shares().each() / kBlocksASet) + table.home_of(block);
          ASSERT_LT(set, homes.size());
          ++homes[set];
        }
        const auto [least, most] = std::minmax_element(homes.begin(), homes.end());
        EXPECT_LE(*most - *least, 2 * kBlocksASet)
            << frames << " frames, " << partitions << " partitions, from " << first;
        // Whole runs of the partition map are spread without any difference.
        if (partitions == 1 && first % table.shares().frame_count() == 0) EXPECT_EQ(*most, *least);
      }
    }
}

TEST(PageSetTable, strides_are_spread_too) {
  const PageSetTable table = table_of(4096, 1);
  for (uint64_t stride : {2u, 8u, 64u, 512u, 1024u, 4096u, 65536u}) {
    std::vector<unsigned> homes(512);
    for (uint64_t i = 0; i < 4096; ++i) ++homes[table.home_of(BlockId(i * stride))];
    EXPECT_LE(*std::max_element(homes.begin(), homes.end()), 40u) << "of 8 on average, stride " << stride;
  }
}

Options sets(uint32_t frames) { return one_partition(frames, kPageSets); }

TEST(PageSets, data_that_just_fits_fits) {
  CacheFixture f(sets(4096));
  for (uint64_t b = 0; b < 4096; ++b) f.store_directly(b, b + 1);
  for (uint64_t b = 0; b < 4096; ++b) EXPECT_EQ(f.read(b), b + 1);
  CounterDelta delta;
  for (uint64_t b = 0; b < 4096; ++b) EXPECT_EQ(f.read(b), b + 1);
  EXPECT_EQ(delta(Counter::fills), 0u);
  EXPECT_EQ(delta(Counter::evictions), 0u);
}

TEST(PageSets, the_least_used_block_of_a_set_leaves) {
  CacheFixture f(sets(16));
  for (uint64_t b = 0; b < 400; ++b) f.store_directly(b, b);
  for (int use = 0; use < 10; ++use)
    for (uint64_t b = 0; b < 6; ++b) f.read(b);
  for (uint64_t b = 100; b < 400; ++b) f.read(b);  // each once
  CounterDelta delta;
  for (uint64_t b = 0; b < 6; ++b) EXPECT_EQ(f.read(b), b);
  EXPECT_EQ(delta(Counter::fills), 0u) << "the often used ones stayed";
}

TEST(PageSets, every_frame_can_be_pinned_wherever_blocks_are_at_home) {
  constexpr uint32_t kFrames = 256;
  CacheFixture f(sets(kFrames));
  Rng rng(1);
  std::vector<Pin> pins;
  std::vector<uint64_t> blocks;
  while (pins.size() < kFrames) {
    const uint64_t block = rng.below(kBlocks);
    if (std::find(blocks.begin(), blocks.end(), block) != blocks.end()) continue;
    Pin pin;
    ASSERT_TRUE(f.cache().pin(f.client(), BlockId(block), Access::kWrite, &pin)) << pins.size();
    for (size_t at = 0; at < f.block_bytes(); at += 512) std::memcpy(pin.data + at, &block, sizeof block);
    pins.push_back(pin);
    blocks.push_back(block);
  }
  EXPECT_EQ(f.cache().free_frames(), 0u);
  f.cache().check_invariants();
  for (size_t i = 0; i < pins.size(); ++i) {
    Pin again;
    ASSERT_TRUE(f.cache().pin(f.client(), BlockId(blocks[i]), Access::kRead, &again));
    EXPECT_EQ(again.frame, pins[i].frame) << "found where it strayed to";
    f.cache().unpin(f.client(), again.frame);
  }
  for (const Pin& pin : pins) f.cache().unpin(f.client(), pin.frame);
  f.cache().check_invariants();
  for (uint64_t b = 0; b < kBlocks; b += 64) f.read(b);  // strays leave
  for (const uint64_t block : blocks) {
    Pin pin;
    ASSERT_TRUE(f.cache().pin(f.client(), BlockId(block), Access::kRead, &pin));
    uint64_t value;
    std::memcpy(&value, pin.data, sizeof value);
    EXPECT_EQ(value, block);
    f.cache().unpin(f.client(), pin.frame);
  }
}

TEST(PageSets, dirty_blocks_are_written_before_anybody_waits) {
  CacheFixture f(sets(1024));
  Rng rng(1);
  CounterDelta delta;
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(f.write(rng.below(8192), 1));
  EXPECT_GT(delta(Counter::writebacks), 10'000u);
  EXPECT_LT(delta(Counter::dirty_evictions), delta(Counter::evictions) / 10) << "waits for a write";
}

TEST(PageSets, a_lower_limit_is_kept_and_lifted) {
  CacheFixture f(sets(1024));
  for (uint64_t b = 0; b < 1024; ++b) ASSERT_TRUE(f.write(b, b + 1));
  for (uint32_t limit : {512u, 100u, 1000u}) {
    f.cache().set_frame_limit(limit);
    ASSERT_TRUE(f.cache().evict_to_limit(f.client()));
    EXPECT_LE(f.cache().used_frames(), limit);
    for (uint64_t b = 0; b < 1024; ++b) ASSERT_EQ(f.read(b), b + 1);
    EXPECT_LE(f.cache().used_frames(), limit);
    EXPECT_GT(f.cache().used_frames(), limit / 2) << "and used";
  }
}

// Misses of all threads at once, over few sets, with ranges that are dropped and limits that change beside them.
TEST(PageSets, misses_drops_and_limits_at_once) {
  CacheFixture f(sets(128));
  constexpr uint64_t kShared = 400, kOwn = 200;
  for (uint64_t b = 0; b < kShared; ++b) f.store_directly(b, b + 1);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Client* client = *f.cache().open_client();
      Rng rng(t + 1);
      const uint64_t own = 1000 + t * kOwn;
      std::vector<uint64_t> values(kOwn);
      for (int step = 0; step < 30'000; ++step) {
        Pin pin;
        const uint64_t shared = rng.below(kShared);
        ASSERT_TRUE(f.cache().pin(*client, BlockId(shared), Access::kRead, &pin));
        uint64_t value;
        std::memcpy(&value, pin.data + 512, sizeof value);
        ASSERT_EQ(value, shared + 1);
        f.cache().unpin(*client, pin.frame);
        const uint64_t mine = rng.below(kOwn);
        const bool write = rng.below(2) == 0;
        ASSERT_TRUE(
            f.cache().pin(*client, BlockId(own + mine), write ? Access::kWrite : Access::kRead, &pin));
        std::memcpy(&value, pin.data, sizeof value);
        ASSERT_EQ(value, values[mine]) << "block " << own + mine;
        if (write) {
          values[mine] = rng.next();
          std::memcpy(pin.data, &values[mine], sizeof value);
        }
        f.cache().unpin(*client, pin.frame);
        if (rng.below(500) == 0) {
          const uint64_t first = rng.below(kOwn - 20), count = 1 + rng.below(20);
          f.cache().discard(*client, BlockId(own + first), count);
          for (uint64_t b = first; b < first + count; ++b) {
            f.blocks().set_contents(BlockId(own + b), false);
            values[b] = 0;
          }
        }
      }
      f.cache().close_client(client);
    });
  std::thread adapter([&] {
    Client* client = *f.cache().open_client();
    for (uint32_t limit = 32; !stop; limit = limit == 128 ? 32 : limit + 32) {
      f.cache().set_frame_limit(limit);
      (void)f.cache().evict_to_limit(*client).is_ok();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    f.cache().close_client(client);
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  adapter.join();
}

TEST(PageSets, have_no_servers) {
  auto store = store::MemoryStore::create(kMiB);
  ASSERT_TRUE(store.is_ok());
  IdentityBlocks none(**store, 12);
  Options options = sets(1000);
  options.delegation = Delegation::kDedicated;
  const auto made = SharedCache::create(options, none, nullptr, nullptr);
  ASSERT_FALSE(made.is_ok());
  EXPECT_NE(made.status().message().find("no servers"), std::string::npos) << made.status().message();
}

}  // namespace
}  // namespace spw::cache
