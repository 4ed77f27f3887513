// The index of a file's dirty blocks under load: on a small cache, which writes behind all the time, a flush by the
// index misses nothing that was noted before it.
#include "files/dirty_blocks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "store/memory_store.h"

namespace spw::files {
namespace {

constexpr unsigned kShift = 12;
constexpr uint64_t kBlocks = 512;

// Block b of the file is block b of the cache and lies at its own offset of the store.
class OneFile final : public cache::BlockSource {
 public:
  explicit OneFile(store::Store& store) : store_(store) {}
  void watch(DirtyBlocks* watcher) { watcher_ = watcher; }
  cache::Backing locate_for_fill(BlockId block) override { return {&store_, block.value << kShift, true}; }
  cache::Backing locate_for_writeback(BlockId block) override {
    return {&store_, block.value << kShift, true};
  }
  void written_back(BlockId, const store::Store*) override {}
  void cleaned(BlockId first, std::span<const FrameId> frames) override {
    watcher_->cleaned(first.value << kShift, first, frames);
  }

 private:
  store::Store& store_;
  DirtyBlocks* watcher_ = nullptr;
};

class DirtyBlocksTest : public testing::Test {
 protected:
  explicit DirtyBlocksTest(uint32_t frames = 128)
      : store_(std::move(*store::MemoryStore::create(kBlocks << kShift, nullptr))),
        source_(*store_),
        uses_(std::move(*files::UseSlots::map_memory())),
        nodes_(uses_) {
    cache::Options options;
    options.frame_count = frames;
    options.block_shift = kShift;
    options.partitions = 2;
    auto cache = cache::SharedCache::create(
        options, source_, [](void*, const Status& status) { FAIL() << status.message(); }, nullptr);
    SPW_CHECK(cache.is_ok());
    cache_ = std::move(*cache);
    dirty_ = std::make_unique<DirtyBlocks>(nodes_, *cache_, kShift, total_);
    source_.watch(dirty_.get());
  }

  void write(cache::Client& client, uint64_t block, size_t slot, uint64_t value) {
    cache::Pin pin;
    ASSERT_TRUE(cache_->pin(client, BlockId(block), cache::Access::kWrite, &pin));
    std::atomic_ref(*reinterpret_cast<uint64_t*>(pin.data + slot * 8))
        .store(value, std::memory_order_relaxed);
    dirty_->note(block);
    cache_->unpin(client, pin.frame);
  }
  Status flush(cache::Client& client) {
    uint64_t from = 0;
    cache::Flushing flushing;
    cache_->begin_flush(
        client,
        [&]() -> cache::BlockRun {
          const auto run = from < kBlocks ? dirty_->next(from, kBlocks - 1, 64) : files::PageIndex::Run();
          from = run.first + run.count;
          return {BlockId(run.first), run.count};
        },
        &flushing);
    return cache_->end_flush(client, &flushing);
  }
  uint64_t stored(uint64_t block, size_t slot) {
    alignas(4096) std::byte buffer[1 << kShift];
    store::Request request;
    request.offset_bytes = block << kShift;
    request.segment_count = 1;
    request.segments[0] = {buffer, sizeof buffer};
    EXPECT_TRUE(store_->transfer(request));
    uint64_t value;
    std::memcpy(&value, buffer + slot * 8, sizeof value);
    return value;
  }

  std::unique_ptr<store::Store> store_;
  OneFile source_;
  files::UseSlots uses_;
  files::PageNodes nodes_;
  Atomic<uint64_t> total_{0};
  std::unique_ptr<cache::SharedCache> cache_;
  std::unique_ptr<DirtyBlocks> dirty_;
};

TEST_F(DirtyBlocksTest, a_block_is_there_until_it_has_been_written) {
  cache::Client* client = *cache_->open_client();
  write(*client, 3, 0, 1);
  write(*client, 3, 1, 2);
  write(*client, 40, 0, 3);
  EXPECT_EQ(dirty_->count(), 2u);
  EXPECT_EQ(total_.load_relaxed(), 2u);
  EXPECT_GT(dirty_->since_ns(), 0u);
  ASSERT_TRUE(flush(*client));
  EXPECT_EQ(dirty_->count(), 0u);
  EXPECT_EQ(dirty_->next(0, kBlocks, 9).count, 0u);
  EXPECT_EQ(stored(3, 1), 2u);
  write(*client, 5, 0, 1);
  write(*client, 6, 0, 1);
  dirty_->forget_from(6);
  EXPECT_EQ(dirty_->next(0, kBlocks, 9).count, 1u);
  EXPECT_EQ(total_.load_relaxed(), 1u);
  cache_->close_client(client);
}

TEST_F(DirtyBlocksTest, what_was_noted_before_a_flush_is_written_after_it) {
  constexpr size_t kThreads = 4;
  constexpr uint64_t kVersions = 300;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      cache::Client* client = *cache_->open_client();
      Rng rng(t + 1);
      for (uint64_t version = 1; version <= kVersions; ++version) {
        std::vector<uint64_t> blocks;
        for (int i = 0; i < 20; ++i) blocks.push_back(rng.below(i % 4 == 0 ? kBlocks : 16));
        for (const uint64_t block : blocks) write(*client, block, t, version);
        ASSERT_TRUE(flush(*client));
        for (const uint64_t block : blocks) ASSERT_EQ(stored(block, t), version) << block;
      }
      cache_->close_client(client);
    });
  for (std::thread& thread : threads) thread.join();
  cache::Client* client = *cache_->open_client();
  ASSERT_TRUE(flush(*client));
  EXPECT_EQ(dirty_->count(), 0u);
  EXPECT_EQ(total_.load_relaxed(), 0u);
  cache_->close_client(client);
}

}  // namespace
}  // namespace spw::files
