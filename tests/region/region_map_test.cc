#include "region/region_map.h"

#include <gtest/gtest.h>

#include <thread>

#include "abi/abi.h"
#include "fakes.h"

namespace spw::region {
namespace {

constexpr uint64_t kBlock = 4096;
using testing::FakeStore;
using testing::RecordedRanges;

uintptr_t at(uint64_t offset) { return SPW_MANAGED_BASE + offset; }
BlockId block(uint64_t offset) { return BlockId(offset / kBlock); }

struct RegionMapTest : ::testing::Test {
  RegionMapTest() {
    auto made = RegionMap::create(12, 64 * kGiB, spill);
    EXPECT_TRUE(made.is_ok());
    map = std::move(*made);
    map->attach(&ranges);
  }
  ~RegionMapTest() override {
    map->check_invariants();
    map.reset();
  }
  FakeStore spill{64 * kGiB};
  RecordedRanges ranges;
  std::unique_ptr<RegionMap> map;
};

TEST_F(RegionMapTest, what_belongs_to_no_region_has_no_store) {
  EXPECT_EQ(map->locate_for_fill(block(8 * kMiB)).store, nullptr);
  EXPECT_EQ(map->locate_for_writeback(block(8 * kMiB)).store, nullptr);
  EXPECT_EQ(map->kind_at(at(8 * kMiB)), Kind::kNone);
}

TEST_F(RegionMapTest, an_anonymous_block_lies_at_its_own_offset_and_has_contents_once_written_back) {
  map->add_anonymous(at(4 * kMiB), 10 * kBlock);
  auto backing = map->locate_for_fill(block(4 * kMiB + 3 * kBlock));
  EXPECT_EQ(backing.store, &spill);
  EXPECT_EQ(backing.offset_bytes, 4 * kMiB + 3 * kBlock);
  EXPECT_FALSE(backing.has_contents);
  map->written_back(block(4 * kMiB + 3 * kBlock), &spill);
  EXPECT_TRUE(map->locate_for_fill(block(4 * kMiB + 3 * kBlock)).has_contents);
  EXPECT_FALSE(map->locate_for_fill(block(4 * kMiB + 2 * kBlock)).has_contents);
  EXPECT_EQ(map->locate_for_fill(block(4 * kMiB + 10 * kBlock)).store, nullptr);
}

TEST_F(RegionMapTest, discard_forgets_contents_and_gives_space_back_in_one_request_per_run) {
  map->add_anonymous(at(4 * kMiB), 100 * kBlock);
  for (uint64_t i = 10; i < 20; ++i) map->written_back(block(4 * kMiB + i * kBlock), &spill);
  map->written_back(block(4 * kMiB + 50 * kBlock), &spill);
  map->discard(at(4 * kMiB), 100 * kBlock);
  EXPECT_EQ(ranges.discards, (std::vector<RecordedRanges::Call>{{1024, 100}}));
  EXPECT_FALSE(map->locate_for_fill(block(4 * kMiB + 15 * kBlock)).has_contents);
  EXPECT_EQ(spill.discards, 2u);
  EXPECT_EQ(spill.discarded_bytes, 11 * kBlock);
}

TEST_F(RegionMapTest, what_is_written_after_a_discard_stays) {
  map->add_anonymous(at(4 * kMiB), 4 * kBlock);
  map->written_back(block(4 * kMiB), &spill);
  map->discard(at(4 * kMiB), 4 * kBlock);
  map->written_back(block(4 * kMiB), &spill);
  spill.discards = 0;
  map->flush_holes();
  EXPECT_EQ(spill.discards, 0u);
  EXPECT_TRUE(map->locate_for_fill(block(4 * kMiB)).has_contents);
}

TEST_F(RegionMapTest, never_written_ranges_cost_the_store_nothing) {
  map->add_anonymous(at(kGiB), 8 * kGiB);
  map->discard(at(kGiB), 8 * kGiB);
  map->remove(at(kGiB), 8 * kGiB);
  map->flush_holes();
  EXPECT_EQ(spill.discards + spill.reads + spill.writes, 0u);
  EXPECT_LT(map->metadata_bytes(), 600 * kKiB);
}

TEST_F(RegionMapTest, a_range_handed_out_again_is_not_discarded_behind_its_new_owner) {
  map->add_anonymous(at(4 * kMiB), 10 * kBlock);
  for (uint64_t i = 0; i < 10; ++i) map->written_back(block(4 * kMiB + i * kBlock), &spill);
  map->remove(at(4 * kMiB), 10 * kBlock);
  map->add_anonymous(at(4 * kMiB + 2 * kBlock), 3 * kBlock);
  map->flush_holes();
  EXPECT_EQ(spill.discarded_bytes, (7 + 1) * kBlock);  // and the one behind, which is nobody's
}

TEST_F(RegionMapTest, a_shared_file_is_filled_from_and_written_to_its_file) {
  auto file = map->adopt(std::make_unique<FakeStore>(kMiB));
  ASSERT_TRUE(map->add_file(at(6 * kMiB), 64 * kBlock, {file, 8 * kBlock, Kind::kSharedFile}).is_ok());
  auto fill = map->locate_for_fill(block(6 * kMiB + 5 * kBlock));
  EXPECT_EQ(fill.store, file.get());
  EXPECT_EQ(fill.offset_bytes, 13 * kBlock);
  EXPECT_TRUE(fill.has_contents);
  EXPECT_EQ(map->locate_for_writeback(block(6 * kMiB)).offset_bytes, 8 * kBlock);
  map->written_back(block(6 * kMiB), &spill);
  EXPECT_EQ(map->locate_for_fill(block(6 * kMiB)).store, file.get());
}

TEST_F(RegionMapTest, a_private_file_is_read_until_written_back_and_never_written) {
  auto file = map->adopt(std::make_unique<FakeStore>(kMiB));
  ASSERT_TRUE(map->add_file(at(6 * kMiB), 64 * kBlock, {file, 0, Kind::kPrivateFile}).is_ok());
  EXPECT_EQ(map->locate_for_fill(block(6 * kMiB)).store, file.get());
  auto writeback = map->locate_for_writeback(block(6 * kMiB));
  EXPECT_EQ(writeback.store, &spill);
  EXPECT_EQ(writeback.offset_bytes, 6 * kMiB);
  map->written_back(block(6 * kMiB), &spill);
  EXPECT_EQ(map->locate_for_fill(block(6 * kMiB)).store, &spill);
  EXPECT_EQ(map->locate_for_fill(block(6 * kMiB + kBlock)).store, file.get());
  map->remove(at(6 * kMiB), 64 * kBlock);
  map->flush_holes();
  EXPECT_EQ(spill.discarded_bytes, 2 * kBlock);  // and the one behind it
}

TEST_F(RegionMapTest, who_caches_a_range_is_told_of_it_before_it_is_live_and_after) {
  struct Ranges : RecordedRanges {
    void grow(BlockId first, uint64_t count, uint64_t live_bytes, bool has_contents) override {
      was_live = map->is_live(at(first.value * kBlock), count * kBlock);
      RecordedRanges::grow(first, count, live_bytes, has_contents);
    }
    void grown(BlockId first, uint64_t count) override {
      is_live = map->is_live(at(first.value * kBlock), count * kBlock);
    }
    RegionMap* map = nullptr;
    bool was_live = true, is_live = false;
  } told;
  told.map = map.get();
  map->attach(&told);
  map->add_anonymous(at(4 * kMiB), 10 * kBlock);
  EXPECT_TRUE(told.is_live && !told.was_live);
  EXPECT_EQ(told.live, 10 * kBlock);
  EXPECT_FALSE(told.last_has_contents);
  auto file = map->adopt(std::make_unique<FakeStore>(3 * kBlock));
  ASSERT_TRUE(map->add_file(at(6 * kMiB), 64 * kBlock, {file, 0, Kind::kSharedFile}).is_ok());
  EXPECT_TRUE(told.is_live && !told.was_live);
  EXPECT_EQ(told.live, 13 * kBlock);
  EXPECT_TRUE(told.last_has_contents);
  EXPECT_EQ(told.grows, (std::vector<RecordedRanges::Call>{{1024, 10}, {1536, 3}}));
  file.reset();
  map->attach(&ranges);
}

TEST_F(RegionMapTest, a_range_has_no_home_before_its_frames_are_discarded) {
  struct Ranges : RecordedRanges {
    void discard(BlockId first, uint64_t) override { home = map->locate_for_writeback(first).store; }
    RegionMap* map = nullptr;
    store::Store* home = nullptr;
  } asks;
  asks.map = map.get();
  map->attach(&asks);
  auto file = map->adopt(std::make_unique<FakeStore>(kMiB));
  asks.home = file.get();
  ASSERT_TRUE(map->add_file(at(6 * kMiB), 4 * kBlock, {file, 0, Kind::kSharedFile}).is_ok());
  map->remove(at(6 * kMiB), 4 * kBlock);
  EXPECT_EQ(asks.home, nullptr);
  file.reset();
  map->attach(&ranges);
}

TEST_F(RegionMapTest, a_read_only_file_is_asked_and_refuses_a_writeback_itself) {
  auto file = map->adopt(std::make_unique<FakeStore>(kMiB));
  ASSERT_TRUE(map->add_file(at(6 * kMiB), 4 * kBlock, {file, 0, Kind::kReadOnlyFile}).is_ok());
  EXPECT_EQ(map->locate_for_writeback(block(6 * kMiB)).store, file.get());
}

TEST_F(RegionMapTest, blocks_behind_the_end_of_a_file_are_not_live_but_the_tail_is) {
  auto file = map->adopt(std::make_unique<FakeStore>(3 * kBlock + 100));
  ASSERT_TRUE(map->add_file(at(6 * kMiB), 64 * kBlock, {file, kBlock, Kind::kSharedFile}).is_ok());
  EXPECT_EQ(map->locate_for_fill(block(6 * kMiB + 2 * kBlock)).store, file.get());
  EXPECT_EQ(map->locate_for_fill(block(6 * kMiB + 3 * kBlock)).store, nullptr);
}

TEST_F(RegionMapTest, a_store_is_forgotten_by_the_cache_when_its_last_block_goes) {
  store::Store* raw;
  {
    auto file = map->adopt(std::make_unique<FakeStore>(kMiB));
    raw = file.get();
    ASSERT_TRUE(map->add_file(at(6 * kMiB), 64 * kBlock, {file, 0, Kind::kSharedFile}).is_ok());
  }
  map->remove(at(6 * kMiB), 32 * kBlock);
  EXPECT_TRUE(ranges.forgotten.empty());
  map->remove(at(6 * kMiB + 32 * kBlock), 32 * kBlock);
  EXPECT_EQ(ranges.forgotten, std::vector<store::Store*>{raw});
  map->add_anonymous(at(6 * kMiB), kBlock);
  EXPECT_EQ(map->kind_at(at(6 * kMiB)), Kind::kAnonymous);
}

TEST_F(RegionMapTest, sync_shared_files_touches_nothing_else) {
  auto shared = map->adopt(std::make_unique<FakeStore>(kMiB));
  auto priv = map->adopt(std::make_unique<FakeStore>(kMiB));
  map->add_anonymous(at(4 * kMiB), 16 * kBlock);
  ASSERT_TRUE(map->add_file(at(6 * kMiB), 64 * kBlock, {shared, 0, Kind::kSharedFile}).is_ok());
  ASSERT_TRUE(map->add_file(at(8 * kMiB), 64 * kBlock, {priv, 0, Kind::kPrivateFile}).is_ok());
  map->remove(at(6 * kMiB + 8 * kBlock), 8 * kBlock);
  ASSERT_TRUE(map->sync_shared_files().is_ok());
  EXPECT_EQ(ranges.syncs, (std::vector<RecordedRanges::Call>{{1536, 8}, {1552, 48}}));
}

TEST_F(RegionMapTest, lookups_run_beside_changes) {
  map->add_anonymous(at(4 * kMiB), kMiB);
  std::thread looks([&] {
    for (int round = 0; round < 20000; ++round) {
      auto backing = map->locate_for_fill(block(16 * kMiB + (round % 4096) * kBlock));
      if (backing.store != nullptr) {
        EXPECT_EQ(backing.store, &spill);
      }
      map->written_back(block(4 * kMiB + (round % 256) * kBlock), &spill);
    }
  });
  for (int round = 0; round < 200; ++round) {
    map->add_anonymous(at(16 * kMiB), 16 * kMiB);
    map->remove(at(16 * kMiB), 16 * kMiB);
  }
  looks.join();
}

TEST(SparseBits, ranges_agree_with_a_plain_bitmap) {
  NativeMemory memory;
  SparseBits bits;
  constexpr uint64_t kBits = 3 * SparseBits::kLeafBits;
  ASSERT_TRUE(bits.allocate(memory, kBits).is_ok());
  std::vector<bool> model(kBits);
  uint64_t seed = 42;
  auto random = [&](uint64_t bound) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % bound;
  };
  for (int round = 0; round < 400; ++round) {
    bool whole_leaf = random(8) == 0;
    uint64_t first = whole_leaf ? random(3) * SparseBits::kLeafBits : random(kBits);
    uint64_t count = whole_leaf ? SparseBits::kLeafBits : std::min(random(500), kBits - first);
    bool set = random(2) == 0;
    const uint64_t were_set = bits.count_set(first, count);
    if (set)
      bits.set_range(first, count);
    else
      EXPECT_EQ(bits.clear_range(first, count), were_set);
    std::fill(model.begin() + first, model.begin() + first + count, set);
  }
  std::vector<bool> seen(kBits);
  bits.for_each_run(0, kBits, [&](uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) seen[i] = true;
  });
  for (uint64_t i = 0; i < kBits; ++i) {
    ASSERT_EQ(bits.test(i), model[i]) << i;
    ASSERT_EQ(seen[i], model[i]) << i;
  }
  EXPECT_EQ(bits.count_set(100, 70000),
            uint64_t(std::count(model.begin() + 100, model.begin() + 70100, true)));
}

TEST(HoleList, random_adds_and_cancels_discard_exactly_what_is_pending) {
  testing::FakeStore store(kGiB);
  HoleList holes(store);
  constexpr uint64_t kPages = 1024;
  std::vector<bool> pending(kPages);
  uint64_t seed = 7;
  auto random = [&](uint64_t bound) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % bound;
  };
  std::vector<std::byte> page(4096, std::byte{1});
  for (uint64_t i = 0; i < kPages; ++i) {
    store::Request write;
    write.op = store::Op::kWrite;
    write.offset_bytes = i * 4096;
    write.segment_count = 1;
    write.segments[0] = {page.data(), page.size()};
    ASSERT_TRUE(store.transfer(write).is_ok());
  }
  for (int round = 0; round < 40; ++round) {
    uint64_t first = random(kPages), count = 1 + random(std::min<uint64_t>(60, kPages - first));
    bool add = random(3) != 0;
    add ? holes.add(first * 4096, count * 4096) : holes.cancel(first * 4096, count * 4096);
    std::fill(pending.begin() + first, pending.begin() + first + count, add);
    holes.check_invariants();
    ASSERT_EQ(holes.pending_bytes(), 4096u * std::count(pending.begin(), pending.end(), true));
  }
  size_t dropped = std::count(pending.begin(), pending.end(), true);
  ASSERT_GT(dropped, 0u);
  holes.flush();
  EXPECT_EQ(store.pages_held(), kPages - dropped);
  EXPECT_EQ(holes.pending_bytes(), 0u);
}

TEST_F(RegionMapTest, blocks_behind_the_space_belong_to_nobody) {
  EXPECT_EQ(map->locate_for_fill(block(64 * kGiB)).store, nullptr);
  EXPECT_EQ(map->kind_at(at(64 * kGiB)), Kind::kNone);
  EXPECT_FALSE(map->is_live(at(64 * kGiB - kBlock), 2 * kBlock));
}

TEST_F(RegionMapTest, a_range_is_live_when_all_of_it_is) {
  map->add_anonymous(at(kChunkBytes), 4 * kBlock);
  EXPECT_TRUE(map->is_live(at(kChunkBytes) + 5, 4 * kBlock - 5));
  EXPECT_FALSE(map->is_live(at(kChunkBytes) + 5, 4 * kBlock));
  EXPECT_FALSE(map->is_live(at(kChunkBytes) - 1, 1));
  EXPECT_FALSE(map->is_live(at(0) - kBlock, kBlock));
  EXPECT_FALSE(map->is_live(at(kChunkBytes), UINT64_MAX));
}

TEST_F(RegionMapTest, a_miss_fills_its_aligned_piece_and_advice_stands_in_for_it) {
  const uintptr_t begin = at(16 * kMiB);
  map->set_fill_bytes(begin, 16 * kMiB, 8 * kMiB);
  auto fill = map->fill_of(block(25 * kMiB));
  EXPECT_EQ(fill.first, block(24 * kMiB));
  EXPECT_EQ(fill.count, 8 * kMiB / kBlock);
  EXPECT_EQ(map->fill_of(block(33 * kMiB)).count, 1u);
  map->advise_fill_bytes(begin, 2 * kMiB, kBlock);
  EXPECT_EQ(map->fill_of(block(16 * kMiB)).count, 1u);
  EXPECT_EQ(map->fill_of(block(18 * kMiB)).count, 8 * kMiB / kBlock);
  map->advise_fill_bytes(begin, 2 * kMiB, 0);
  EXPECT_EQ(map->fill_of(block(16 * kMiB)).count, 8 * kMiB / kBlock);
  map->set_fill_bytes(begin, 16 * kMiB, 0);
  EXPECT_EQ(map->fill_of(block(16 * kMiB)).count, 1u);
}

TEST_F(RegionMapTest, shared_files_are_flushed_without_a_sync) {
  auto file = map->adopt(std::make_unique<FakeStore>(4 * kMiB));
  ASSERT_TRUE(map->add_file(at(kGiB), 4 * kMiB, {file, 0, Kind::kSharedFile}));
  ASSERT_TRUE(map->flush_shared_files());
  EXPECT_EQ(ranges.flushes.size(), 1u);
  EXPECT_TRUE(ranges.syncs.empty());
  map->remove(at(kGiB), 4 * kMiB);
}

}  // namespace
}  // namespace spw::region
