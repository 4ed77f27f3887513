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

// Whose every block begins with 7s. Another process may write to it.
class StoresAheadOfAFile : public StoresAhead {
 protected:
  void SetUp() override {
    StoresAhead::SetUp();
    if (IsSkipped()) return;
    heap_ = std::move(*heap::Heap::create(*regions_, kSpaceBytes));
    auto file = std::move(*store::MemoryStore::create(kBlocks << kShift, nullptr));
    file_ = file.get();
    for (uint64_t block = 0; block < kBlocks; ++block) write_to_file(block, 7);
    auto mapped = heap_->mappings().map_file(
        kBlocks << kShift, {regions_->adopt(std::move(file)), 0, region::Kind::kSharedFile});
    ASSERT_TRUE(mapped);
    base_ = reinterpret_cast<std::byte*>(*mapped);
  }
  void TearDown() override {
    if (heap_) unmap();
    StoresAhead::TearDown();
  }
  void unmap() {
    if (base_) heap_->mappings().unmap(reinterpret_cast<uintptr_t>(base_), kBlocks << kShift);
    base_ = nullptr;
  }
  void write_to_file(uint64_t block, int byte) {
    std::memset(buffer(), byte, size_t{1} << kShift);
    transfer(store::Op::kWrite, block);
  }
  uint64_t in_file(uint64_t block) {
    transfer(store::Op::kRead, block);
    uint64_t value;
    std::memcpy(&value, buffer(), sizeof value);
    return value;
  }
  static uint64_t all(uint64_t byte) { return byte * 0x0101010101010101u; }
  void push_file_out() {
    const uintptr_t memory = heap_->mappings().map_anonymous(2 * kFrames << kShift);
    ASSERT_NE(memory, 0u);
    push_out(reinterpret_cast<std::byte*>(memory), 0);
    heap_->mappings().unmap(memory, 2 * kFrames << kShift);
  }
  void flush() { ASSERT_TRUE(cache_->flush(engine_->client(), first_block(), kBlocks)); }
  BlockId first_block() const {
    return BlockId((reinterpret_cast<uintptr_t>(base_) - SPW_MANAGED_BASE) >> kShift);
  }

  std::byte* base_ = nullptr;

 private:
  static std::byte* buffer() {
    alignas(4096) static std::byte bytes[size_t{1} << kShift];
    return bytes;
  }
  void transfer(store::Op op, uint64_t block) {
    store::Request request;
    request.op = op;
    request.offset_bytes = block << kShift;
    request.segment_count = 1;
    request.segments[0] = {buffer(), size_t{1} << kShift};
    ASSERT_TRUE(file_->transfer(request));
  }

  std::unique_ptr<heap::Heap> heap_;
  store::Store* file_ = nullptr;
};

TEST_F(StoresAheadOfAFile, come_writable_and_are_written_only_where_somebody_stored) {
  for (uint64_t block = 0; block < 2000; ++block) store(base_, block, block);
  EXPECT_GE(counted(Counter::readahead_hits), 1000u);
  constexpr uint64_t kEnd = 2400;
  uint64_t came_protected = 0;
  for (uint64_t block = 2000; block < kEnd; ++block) {
    came_protected += is_resident(base_ + (block << kShift)) &&
                      hint(base_ + (block << kShift)) == static_cast<int>(HintTable::Hint::kAlongUnseen);
    if (block % 4 == 3)
      ASSERT_EQ(load(base_, block), all(7));
    else
      store(base_, block, block);
  }
  EXPECT_LE(came_protected, (kEnd - 2000) / 4);
  for (uint64_t block = 2003; block < kEnd; block += 4) write_to_file(block, 8);
  const uint64_t left_out = counted(Counter::unstored_left_out);
  flush();
  EXPECT_GE(counted(Counter::unstored_left_out) - left_out, 50u);
  push_file_out();
  for (uint64_t block = 0; block < kEnd; ++block)
    ASSERT_EQ(in_file(block), block < 2000 || block % 4 != 3 ? block : all(8)) << block;
}

// First all of them are left out, then written; at last each is as it came, which is not as the file has it.
TEST_F(StoresAheadOfAFile, lose_no_store_that_comes_later) {
  for (uint64_t block = 0; block < 2000; ++block) store(base_, block, block);
  uint64_t end = 2000;
  while (is_resident(base_ + (end << kShift))) ++end;
  ASSERT_GE(end, 2016u);
  for (const uint64_t value : {1u, 2u, 7u}) {
    flush();
    for (uint64_t block = 2000; block < end; ++block) word(base_, block) = all(value);
  }
  push_file_out();
  for (uint64_t block = 2000; block < end; ++block) ASSERT_EQ(in_file(block), all(7)) << block;
  unmap();
}

class StoresAheadBySignals : public StoresAheadOfAFile {
  FaultChoice faults_by() const override { return FaultChoice::kSignals; }
};

TEST_F(StoresAheadBySignals, come_writable_where_loads_are_followed_by_stores) {
  for (uint64_t i = 0; i < 1500; ++i) {
    const uint64_t block = i * 997 % kBlocks;
    ASSERT_EQ(word(base_, block), all(7));
    word(base_, block) = block;
  }
  const uint64_t before = counted(Counter::protect_faults);
  for (uint64_t i = 1500; i < 2000; ++i) {
    const uint64_t block = i * 997 % kBlocks;
    ASSERT_EQ(word(base_, block), all(7));
    if (i % 8 != 0) word(base_, block) = block;
  }
  EXPECT_LE(counted(Counter::protect_faults) - before, 150u);
  push_file_out();
  for (uint64_t i = 0; i < 2000; ++i) {
    const uint64_t block = i * 997 % kBlocks;
    ASSERT_EQ(in_file(block), i < 1500 || i % 8 != 0 ? block : all(7)) << i;
  }
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
  // 128 blocks, 16 rounds; each once for every time that all of it was looked at, and some more: one that is lifted,
  // and wanted back, is clean. With its neighbours it was 2,557.
  EXPECT_LE(dirtied, 1750u);
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
