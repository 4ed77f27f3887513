#include "cache/block_table/block_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/rng.h"

namespace spw::cache {
namespace {

BlockTable make_table(uint32_t frames, uint32_t partitions) {
  const FrameShares shares(frames, partitions);
  return BlockTable(shares, std::move(*BlockTable::map_memory(shares)));
}

// The owner's work for one partition, against an unordered map.
class Model {
 public:
  explicit Model(BlockTable& table, PartitionId partition) : table_(table) {
    uint32_t first = table.shares().first(partition).value;
    for (uint32_t f = 0; f < table.shares().of(partition); ++f) free_.push_back(FrameId(first + f));
  }
  bool full() const { return free_.empty(); }
  bool contains(BlockId block) const { return frames_.contains(block.value); }
  FrameId frame_of(BlockId block) const { return contains(block) ? frames_.at(block.value) : kNoFrame; }
  void insert(BlockId block) {
    FrameId frame = free_.back();
    free_.pop_back();
    table_.word(frame).store_release(PinWord::filling(block, 0, false));
    table_.insert(block, frame);
    table_.word(frame).end_filling(FrameState::kResident, 0);
    frames_[block.value] = frame;
  }
  // False if a client has it pinned.
  bool erase(BlockId block) {
    FrameId frame = frames_.at(block.value);
    PinWord was;
    if (!table_.word(frame).try_free(true, &was)) return false;
    table_.erase(block, frame);
    frames_.erase(block.value);
    free_.push_back(frame);
    return true;
  }

 private:
  BlockTable& table_;
  std::unordered_map<uint64_t, FrameId> frames_;
  std::vector<FrameId> free_;
};

// Blocks of one partition, many more than frames.
std::vector<BlockId> blocks_of(const BlockTable& table, PartitionId partition, size_t count) {
  std::vector<BlockId> blocks;
  for (uint64_t b = 1; blocks.size() < count; ++b)
    if (table.map().of(BlockId(b)) == partition) blocks.push_back(BlockId(b));
  return blocks;
}

TEST(BlockTable, agrees_with_a_model_under_random_inserts_and_erases) {
  for (uint32_t frames : {16u, 100u, 300u, 1000u}) {
    BlockTable table = make_table(frames, frames >= 300 ? 4 : 1);
    PartitionId partition(table.map().count() - 1);
    Model model(table, partition);
    std::vector<BlockId> blocks = blocks_of(table, partition, 3 * frames);
    Rng rng(frames);
    for (int i = 0; i < 20'000; ++i) {
      BlockId block = blocks[rng.below(blocks.size())];
      ASSERT_EQ(table.find(block), model.frame_of(block));
      PinWord before;
      FrameId frame = kNoFrame;
      ASSERT_EQ(table.try_pin(block, false, &frame, &before), model.contains(block));
      if (model.contains(block)) {
        ASSERT_EQ(frame, model.frame_of(block));
        table.word(frame).unpin();
        ASSERT_TRUE(model.erase(block));
      } else if (!model.full()) {
        model.insert(block);
      }
    }
    table.check_invariants();
  }
}

TEST(PartitionMap, spreads_contiguous_ranges_evenly_and_strides_of_groups_well) {
  constexpr uint32_t kPartitions = 8;
  const PartitionMap map(kPartitions);
  for (uint64_t stride : {1u, 2u, 8u, 64u}) {
    std::vector<uint32_t> groups(kPartitions);
    constexpr uint32_t kGroups = 8000;
    for (uint64_t g = 0; g < kGroups; ++g)
      ++groups[map.of(BlockId((1000000 + g * stride) << kGroupShift)).value];
    const uint32_t even = kGroups / kPartitions;
    for (uint32_t count : groups) {
      if (stride == 1) EXPECT_EQ(count, even);
      EXPECT_GT(count, even / 2) << stride;
      EXPECT_LT(count, even * 2) << stride;
    }
  }
}

TEST(PartitionMap, numbers_the_blocks_of_a_partition_without_gaps) {
  const PartitionMap map(4);
  std::vector<std::vector<uint64_t>> numbers(4);
  for (uint64_t block = 0; block < 4096 * 4; ++block)
    numbers[map.of(BlockId(block)).value].push_back(map.index_within(BlockId(block)));
  for (const auto& of_partition : numbers)
    for (uint64_t n = 0; n < of_partition.size(); ++n) ASSERT_EQ(of_partition[n], n);
}

TEST(BlockTable, partitions_share_the_frames_without_gaps) {
  for (uint32_t frames : {64u, 301u, 1000u, 65'537u}) {
    for (uint32_t partitions : {1u, 2u, 4u}) {
      BlockTable table = make_table(frames, partitions);
      uint32_t next = 0;
      for (uint32_t p = 0; p < partitions; ++p) {
        EXPECT_EQ(table.shares().first(PartitionId(p)).value, next);
        next += table.shares().of(PartitionId(p));
      }
      EXPECT_EQ(next, frames);
    }
  }
}

TEST(BlockTable, a_concurrent_pin_never_takes_a_wrong_block) {
  BlockTable table = make_table(64, 1);
  Model model(table, PartitionId(0));
  std::vector<BlockId> blocks = blocks_of(table, PartitionId(0), 200);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> pins{0};
  std::vector<std::thread> clients;
  for (uint64_t t = 0; t < 3; ++t) {
    clients.emplace_back([&, t] {
      Rng rng(t + 1);
      while (!stop) {
        BlockId block = blocks[rng.below(blocks.size())];
        FrameId frame;
        PinWord before;
        if (!table.try_pin(block, false, &frame, &before)) continue;
        // While it is pinned the frame stays this block's.
        for (int i = 0; i < 10; ++i) {
          PinWord word = table.word(frame).load_acquire();
          ASSERT_EQ(word.block(), block);
          ASSERT_EQ(word.state(), FrameState::kResident);
        }
        table.word(frame).unpin();
        pins.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  Rng rng(99);
  for (int i = 0; i < 200'000 || pins < 1000; ++i) {
    BlockId block = blocks[rng.below(blocks.size())];
    if (model.contains(block))
      (void)model.erase(block);
    else if (!model.full())
      model.insert(block);
  }
  stop = true;
  for (std::thread& client : clients) client.join();
  table.check_invariants();
}

TEST(BlockTable, costs_sixteen_bytes_a_frame_with_its_pin_word) {
  BlockTable table = make_table(100'000, 4);
  EXPECT_LE(table.metadata_bytes(), 16u * 100'000 + 100);
}

}  // namespace
}  // namespace spw::cache
