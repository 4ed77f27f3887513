// What comes along with blocks that are stored to, and what is written along with those that are evicted.
#include <gtest/gtest.h>

#include "mapped_engine_fixture.h"

namespace spw::access {
namespace {

class StoresAhead : public MappedEngineTest {
 protected:
  static constexpr uint64_t kBlocks = 4096;  // of one area of the predictor's; four times the memory

  std::byte* written() {
    std::byte* base = add(32 * kMiB);
    for (uint64_t block = 0; block < kBlocks; ++block) word(base, block) = block + 1;
    return base;
  }
  static volatile uint64_t& word(std::byte* base, uint64_t block) {
    return *reinterpret_cast<volatile uint64_t*>(base + (block << kShift));
  }
  void store(std::byte* base, uint64_t block, uint64_t value) {
    engine_->hint(reinterpret_cast<uintptr_t>(base + (block << kShift)), true);
    word(base, block) = value;
  }
  uint64_t load(std::byte* base, uint64_t block) {
    engine_->hint(reinterpret_cast<uintptr_t>(base + (block << kShift)), false);
    return word(base, block);
  }
  static uint64_t blocks_dirtied() { return counted(Counter::bytes_dirtied) >> kShift; }
  // How many of the blocks that are there already from `block` on take a store without a fault, and how many not.
  struct Found {
    uint64_t writable = 0, is_protected = 0;
  };
  static Found store_unasked(std::byte* base, uint64_t block) {
    Found found;
    for (; is_resident(base + (block << kShift)); ++block) {
      const uint64_t before = counted(Counter::protect_faults);
      word(base, block) = block + 7;
      ++(counted(Counter::protect_faults) == before ? found.writable : found.is_protected);
    }
    return found;
  }
};

TEST_F(StoresAhead, come_writable_once_others_that_came_so_were_stored_to) {
  std::byte* base = written();
  for (uint64_t block = 0; block < 1200; ++block) store(base, block, block + 7);
  const uint64_t dirtied = blocks_dirtied();
  uint64_t came_protected = 0;
  for (uint64_t block = 1200; block < 2000; ++block) {
    came_protected += is_resident(base + (block << kShift)) &&
                      hint(base + (block << kShift)) == static_cast<int>(HintTable::Hint::kAlongUnseen);
    store(base, block, block + 7);
  }
  // Of sixteen windows one, to see.
  EXPECT_LE(came_protected, 200u);
  EXPECT_GE(counted(Counter::readahead_hits), 1000u);
  const Found found = store_unasked(base, 2000);
  EXPECT_GE(found.writable, 8u);
  EXPECT_EQ(found.is_protected, 0u);
  // Nothing but the stream's next window is dirty without having been stored to.
  EXPECT_LE(blocks_dirtied() - dirtied, 800u + 128);
  push_out(base, kBlocks);
  for (uint64_t block = 0; block < 2000 + found.writable; ++block) ASSERT_EQ(word(base, block), block + 7);
}

TEST_F(StoresAhead, come_protected_where_most_are_only_loaded) {
  std::byte* base = written();
  const uint64_t dirtied = blocks_dirtied();
  uint64_t stored = 0;
  for (uint64_t block = 0; block < 2000; ++block) {
    if (block % 4 == 0) {
      store(base, block, block + 7);
      ++stored;
    } else {
      ASSERT_EQ(load(base, block), block + 1);
    }
  }
  // A store that finds others behind it dirty allows some ahead.
  EXPECT_LE(blocks_dirtied() - dirtied, stored + stored / 4);
}

TEST_F(StoresAhead, of_a_stream_that_turns_from_stores_to_loads_are_protected_soon) {
  std::byte* base = written();
  for (uint64_t block = 0; block < 1200; ++block) store(base, block, block + 1);
  const uint64_t dirtied = blocks_dirtied();
  for (uint64_t block = 1200; block < 3200; ++block) ASSERT_EQ(load(base, block), block + 1);
  EXPECT_LE(blocks_dirtied() - dirtied, 300u);
}

TEST_F(StoresAhead, of_a_shared_file_get_nothing_that_nobody_stored) {
  auto heap = std::move(*heap::Heap::create(*regions_, kSpaceBytes));
  auto file = std::move(*store::MemoryStore::create(kBlocks << kShift, nullptr));
  alignas(4096) static std::byte contents[4096];
  std::memset(contents, 7, sizeof contents);
  for (uint64_t block = 0; block < kBlocks; ++block) {
    store::Request request;
    request.op = store::Op::kWrite;
    request.offset_bytes = block << kShift;
    request.segment_count = 1;
    request.segments[0] = {contents, sizeof contents};
    ASSERT_TRUE(file->transfer(request));
  }
  auto mapped = heap->mappings().map_file(kBlocks << kShift,
                                          {regions_->adopt(std::move(file)), 0, region::Kind::kSharedFile});
  ASSERT_TRUE(mapped);
  auto* base = reinterpret_cast<std::byte*>(*mapped);
  const uint64_t dirtied = blocks_dirtied();
  for (uint64_t block = 0; block < 2000; ++block) store(base, block, block);
  EXPECT_EQ(blocks_dirtied() - dirtied, 2000u);
  EXPECT_GE(counted(Counter::readahead_hits), 1000u);
  heap->mappings().unmap(*mapped, kBlocks << kShift);
}

// Every other block is stored to all the time. What lies beside it comes, and is written and goes, without it.
TEST_F(StoresAhead, do_not_end_because_a_neighbour_is_evicted) {
  constexpr uint64_t kTogether = 256, kRounds = 16;
  std::byte* base = written();
  const auto use = [&](uint64_t first) {
    for (uint64_t block = first; block < kTogether; block += 2) store(base, block, block + 2);
  };
  uint64_t dirtied = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    use(1);
    for (uint64_t i = 0; i < kFrames; ++i) {
      (void)load(base, kTogether + (round * kFrames + i) % (kBlocks - kTogether));
      const uint64_t before = blocks_dirtied();
      if (i % 16 == 0) use(0);
      dirtied += blocks_dirtied() - before;
    }
  }
  // 128 blocks, 16 rounds; each once for every time that all of it was looked at. With its neighbours it was 2,557.
  EXPECT_LE(dirtied, 1500u);
  for (uint64_t block = 0; block < kTogether; ++block) ASSERT_EQ(word(base, block), block + 2);
}

class ZerosAhead : public StoresAhead {
 protected:
  std::string policy() const override { return "clock2q+"; }
  // So many streams, in turn, each of so many blocks that were never written. How many blocks came for each of them.
  double come(uint64_t streams, uint64_t blocks) {
    std::byte* base = add(streams * blocks << kShift);
    const uint64_t before = counted(Counter::zero_fills) + counted(Counter::fault_misses);
    for (uint64_t block = 0; block < blocks; ++block)
      for (uint64_t stream = 0; stream < streams; ++stream)
        word(base, stream * blocks + block) = stream + block;
    const uint64_t came = counted(Counter::zero_fills) + counted(Counter::fault_misses) - before;
    for (uint64_t i = 0; i < streams * blocks; ++i) EXPECT_EQ(word(base, i), i / blocks + i % blocks);
    return static_cast<double>(came) / static_cast<double>(streams * blocks);
  }
};

// More of them than the frames can bring a full run for.
TEST_F(ZerosAhead, get_shorter_where_they_go_before_they_are_used) { EXPECT_LE(come(64, 128), 3.0); }

TEST_F(ZerosAhead, stay_long_for_a_few_streams) {
  const uint64_t faults = counted(Counter::missing_faults);
  EXPECT_LE(come(4, 4096), 1.25);
  // Each once with its run, and when it is read back.
  EXPECT_LE(counted(Counter::missing_faults) - faults, 4u * 4096 / 4);
}

}  // namespace
}  // namespace spw::access
