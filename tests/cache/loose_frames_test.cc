// Blocks that have an address of their own and may lie elsewhere: what the cache promises of them whatever the memory
// is (access/mapped makes it of page tables, which sanitizers cannot follow).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "cache/cache.h"
#include "cache_fixture.h"
#include "platform/memory.h"

namespace spw::cache {
namespace {

constexpr unsigned kShift = 12;
constexpr size_t kBlockBytes = size_t{1} << kShift;
constexpr uint32_t kFrames = 64;
constexpr uint64_t kUsed = 512;

// A place for each block, and one in the pool for each frame. What is left holds nothing of worth.
class TwoPlaces final : public FrameSource {
 public:
  TwoPlaces()
      : in_place_(std::move(*platform::map_anonymous(kUsed << kShift))),
        pool_(std::move(*platform::map_anonymous(uint64_t{kFrames} << kShift))),
        places_(kFrames) {
    for (auto& place : places_) place.store_relaxed(Placement::kNoPlace);
  }
  Placement placement() const override { return {in_place_.data(), kUsed, pool_.data(), places_.data()}; }
  StagingUse staging_use(BlockId, uint64_t) const override { return StagingUse::kNeeded; }
  std::byte* take_staging(Staging kind) override {
    if (kind != Staging::kBlock) return nullptr;
    std::lock_guard lock(mutex_);
    staging_.push_back(std::move(*platform::map_anonymous(kBlockBytes)));
    return staging_.back().data();
  }
  std::byte* fill_address(Resident resident, std::byte* staging, size_t) override {
    if (staging) return staging;
    places_[resident.frame.value].store_relaxed(resident.frame.value);
    return pool(resident.frame);
  }
  void install(std::span<const Resident> run, Contents contents, const std::byte* staging, bool) override {
    if (contents == Contents::kFilled && !staging) return;
    for (const Resident& resident : run) {
      places_[resident.frame.value].store_relaxed(Placement::kPlaced);
      if (contents == Contents::kFilled)
        std::memcpy(at(resident.block), staging, kBlockBytes);
      else if (contents == Contents::kZeros)
        std::memset(at(resident.block), 0, kBlockBytes);
    }
  }
  void place(Resident resident, bool) override {
    std::memcpy(at(resident.block), pool(resident.frame), kBlockBytes);
    std::memset(pool(resident.frame), 0xDB, kBlockBytes);
    places_[resident.frame.value].store_relaxed(Placement::kPlaced);
  }
  void begin_writeback(std::span<const Resident>) override {}
  void end_writeback(Resident) override {}
  void release(std::span<const Resident> victims) override {
    for (const Resident& victim : victims) {
      std::memset(placement().data(victim, kShift), 0xDB, kBlockBytes);
      places_[victim.frame.value].store_relaxed(Placement::kNoPlace);
    }
  }
  size_t release_batch_max() const override { return 8; }

  std::byte* at(BlockId block) const { return in_place_.data() + (block.value << kShift); }

 private:
  std::byte* pool(FrameId frame) const { return pool_.data() + (uint64_t{frame.value} << kShift); }

  platform::Mapping in_place_, pool_;
  std::vector<Atomic<uint32_t>> places_;
  std::mutex mutex_;
  std::vector<platform::Mapping> staging_;
};

class LooseFrames : public testing::TestWithParam<const char*> {
 protected:
  LooseFrames() {
    auto frames = std::make_unique<TwoPlaces>();
    frames_ = frames.get();
    Options options = one_partition(kFrames);
    options.policy = GetParam();
    options.readahead_blocks_max = 0;
    cache_ = cache_over(options, blocks_, std::move(frames));
    client_ = *cache_->open_client();
    for (uint64_t block = 0; block < kUsed; ++block) {
      const Pin written = pin(block, Access::kWrite);
      std::memset(written.data, 0, kBlockBytes);
      std::memcpy(written.data, &block, sizeof block);
      cache_->unpin(*client_, written.frame);
    }
    EXPECT_TRUE(cache_->flush(*client_, BlockId(0), kUsed));
  }
  ~LooseFrames() override {
    cache_->check_invariants();
    cache_->close_client(client_);
  }
  Pin pin(uint64_t block, Access access) {
    Pin pin;
    EXPECT_TRUE(cache_->pin(*client_, BlockId(block), access, &pin));
    return pin;
  }
  Pin pin_loose(uint64_t block, Access access) {
    Pin pin;
    EXPECT_TRUE(cache_->pin_loose(*client_, BlockId(block), access, &pin));
    return pin;
  }
  bool is_loose(uint64_t block, const Pin& pin) const { return pin.data != frames_->at(BlockId(block)); }
  static uint64_t first_word(const Pin& pin) {
    uint64_t word;
    std::memcpy(&word, pin.data, sizeof word);
    return word;
  }

  std::unique_ptr<store::Store> store_ = std::move(*store::MemoryStore::create(kBlocks << kShift));
  IdentityBlocks blocks_{*store_, kShift};
  TwoPlaces* frames_ = nullptr;
  std::unique_ptr<SharedCache> cache_;
  Client* client_ = nullptr;
};

TEST_P(LooseFrames, come_for_who_takes_them_so_and_are_placed_when_one_alone_holds_them) {
  const Pin placed = pin(0, Access::kRead);
  EXPECT_FALSE(is_loose(0, placed));
  cache_->unpin(*client_, placed.frame);
  const Pin loose = pin_loose(1, Access::kRead);
  EXPECT_TRUE(is_loose(1, loose));
  EXPECT_EQ(first_word(loose), 1u);
  const Pin second = pin(1, Access::kWrite);
  EXPECT_EQ(second.data, loose.data) << "where it is";
  EXPECT_FALSE(cache_->place(loose.frame));
  cache_->unpin(*client_, loose.frame);
  EXPECT_TRUE(cache_->place(second.frame));
  EXPECT_TRUE(cache_->place(second.frame)) << "again: nothing more";
  EXPECT_TRUE(cache_->is_dirty(BlockId(1)));
  cache_->unpin(*client_, second.frame);
  const Pin again = pin_loose(1, Access::kRead);
  EXPECT_FALSE(is_loose(1, again));
  EXPECT_EQ(first_word(again), 1u);
  cache_->unpin(*client_, again.frame);
}

TEST_P(LooseFrames, lose_no_update_when_they_are_placed_and_evicted_all_the_time) {
  constexpr uint64_t kThreads = 4, kSteps = 400'000 / SPW_SLOWED;
  std::vector<std::vector<uint64_t>> added(kThreads, std::vector<uint64_t>(kUsed));
  const CounterDelta delta;
  const auto work = [&](uint64_t number) {
    Client& client = **cache_->open_client();
    Rng rng(number + 1);
    for (uint64_t step = 0; step < kSteps / kThreads; ++step) {
      const uint64_t block = rng.below(rng.below(2) == 0 ? 16 : kUsed);
      const bool stores = rng.below(2) == 0;
      const Access access = stores ? Access::kWrite : Access::kRead;
      Pin pin;
      ASSERT_TRUE(rng.below(4) != 0 ? cache_->pin_loose(client, BlockId(block), access, &pin)
                                    : cache_->pin(client, BlockId(block), access, &pin));
      std::byte* data = pin.data;
      if (rng.below(4) == 0 && cache_->place(pin.frame)) data = frames_->at(BlockId(block));
      ASSERT_EQ(*reinterpret_cast<uint64_t*>(data), block);
      std::atomic_ref counter(reinterpret_cast<uint64_t*>(data)[1]);
      if (stores) {
        counter.fetch_add(1, std::memory_order_relaxed);
        ++added[number][block];
      } else {
        ASSERT_GE(counter.load(std::memory_order_relaxed), added[number][block]);
      }
      cache_->unpin(client, pin.frame);
      if (rng.below(2000) == 0) {
        ASSERT_TRUE(cache_->flush(client, BlockId(rng.below(kUsed - 32)), 32));
      }
    }
    cache_->close_client(&client);
  };
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(delta(telemetry::Counter::placed_blocks), 100u);
  EXPECT_GT(delta(telemetry::Counter::evictions), 1000u);
  for (uint64_t block = 0; block < kUsed; ++block) {
    uint64_t sum = 0;
    for (const auto& of_thread : added) sum += of_thread[block];
    const Pin last = pin(block, Access::kRead);
    ASSERT_EQ(reinterpret_cast<uint64_t*>(last.data)[1], sum) << "block " << block;
    cache_->unpin(*client_, last.frame);
  }
}

INSTANTIATE_TEST_SUITE_P(of_policies, LooseFrames, testing::Values("clock", "clock2q+", "lru", "sa-lfu"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

}  // namespace
}  // namespace spw::cache
