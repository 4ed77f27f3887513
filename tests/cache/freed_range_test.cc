// Ranges that are freed while something of them is pinned and handed out again, where blocks lie at their own addresses
// and stores to writable ones go unnoticed.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "cache/cache.h"
#include "cache_fixture.h"
#include "platform/memory.h"
#include "platform/time.h"

namespace spw::cache {
namespace {

constexpr unsigned kShift = 12;
constexpr size_t kBlockBytes = size_t{1} << kShift;
constexpr uint64_t kFreed = 5;

// One block of those of a store belongs to nobody at times.
class BlocksOfOthers final : public BlockSource {
 public:
  explicit BlocksOfOthers(store::Store& store) : blocks_(store, kShift) {}
  Backing locate_for_fill(BlockId block) override {
    return is_freed(block) ? Backing() : blocks_.locate_for_fill(block);
  }
  Backing locate_for_writeback(BlockId block) override {
    return is_freed(block) ? Backing() : blocks_.locate_for_writeback(block);
  }
  void written_back(BlockId block, const store::Store* to) override { blocks_.written_back(block, to); }
  void set_live(bool live) { live_ = live; }

 private:
  bool is_freed(BlockId block) const { return block.value == kFreed && !live_; }

  IdentityBlocks blocks_;
  bool live_ = true;
};

// Memory at the blocks' own places, which nothing protects: the next time that it would be, the test is told.
class PlacedFrames final : public FrameSource {
 public:
  PlacedFrames() : memory_(std::move(*platform::map_anonymous(kBlocks << kShift))) {}
  Placement placement() const override { return {memory_.data(), kBlocks, nullptr, nullptr}; }
  std::byte* fill_address(Resident resident, std::byte*, size_t) override { return at(resident.block); }
  void install(std::span<const Resident> run, Contents contents, const std::byte*, bool) override {
    for (const Resident& resident : run)
      if (contents == Contents::kZeros) std::memset(at(resident.block), 0, kBlockBytes);
  }
  void begin_writeback(std::span<const Resident>) override {
    if (auto told = std::exchange(about_to_protect, nullptr)) told();
  }
  void end_writeback(Resident) override {}
  void release(std::span<const Resident> victims) override {
    for (const Resident& victim : victims) std::memset(at(victim.block), 0xDB, kBlockBytes);
  }
  size_t release_batch_max() const override { return 1; }

  std::byte* at(BlockId block) const { return memory_.data() + (block.value << kShift); }
  std::function<void()> about_to_protect;

 private:
  platform::Mapping memory_;
};

class FreedRangeTest : public testing::Test {
 protected:
  FreedRangeTest() {
    auto frames = std::make_unique<PlacedFrames>();
    frames_ = frames.get();
    cache_ = cache_over(one_partition(64), blocks_, std::move(frames));
    client_ = *cache_->open_client();
  }
  ~FreedRangeTest() override {
    cache_->check_invariants();
    cache_->close_client(client_);
  }
  Pin pin(uint64_t block, Access access) {
    Pin pin;
    EXPECT_TRUE(cache_->pin(*client_, BlockId(block), access, &pin));
    return pin;
  }
  void touch(uint64_t block) { cache_->unpin(*client_, pin(block, Access::kRead).frame); }
  // It was stored to, and freed by one thread while another held it.
  void free_while_held() {
    const Pin held = pin(kFreed, Access::kWrite);
    std::memset(held.data, 1, kBlockBytes);
    blocks_.set_live(false);
    cache_->discard(*client_, BlockId(kFreed), 1);
    cache_->unpin(*client_, held.frame);
  }
  std::byte first_byte_after_eviction() {
    for (uint64_t block = 100; block < 1000; ++block) touch(block);
    EXPECT_NE(*frames_->at(BlockId(kFreed)), std::byte{7}) << "evicted";
    const Pin again = pin(kFreed, Access::kRead);
    const std::byte first = *again.data;
    cache_->unpin(*client_, again.frame);
    return first;
  }

  std::unique_ptr<store::Store> store_ = std::move(*store::MemoryStore::create(kBlocks << kShift));
  BlocksOfOthers blocks_{*store_};
  PlacedFrames* frames_ = nullptr;
  std::unique_ptr<SharedCache> cache_;
  Client* client_ = nullptr;
};

TEST_F(FreedRangeTest, who_holds_a_block_for_a_moment_does_not_see_it_go) {
  const Pin held = pin(kFreed, Access::kWrite);
  std::memset(held.data, 1, kBlockBytes);
  blocks_.set_live(false);
  std::thread freeing([&] {
    Client* const other = *cache_->open_client();
    cache_->discard(*other, BlockId(kFreed), 1);
    cache_->close_client(other);
  });
  platform::sleep_ns(2'000'000);
  EXPECT_EQ(*held.data, std::byte{1});
  cache_->unpin(*client_, held.frame);
  freeing.join();
  EXPECT_EQ(*frames_->at(BlockId(kFreed)), std::byte{0xDB}) << "released, not zeroed";
}

TEST_F(FreedRangeTest, a_held_block_is_zeros_when_its_range_is_handed_out_again) {
  free_while_held();
  blocks_.set_live(true);
  const Pin again = pin(kFreed, Access::kRead);
  EXPECT_EQ(*again.data, std::byte{0});
  cache_->unpin(*client_, again.frame);
}

TEST_F(FreedRangeTest, a_store_to_it_before_anybody_looked_is_kept) {
  free_while_held();
  blocks_.set_live(true);
  *frames_->at(BlockId(kFreed)) = std::byte{7};
  EXPECT_EQ(first_byte_after_eviction(), std::byte{7});
}

TEST_F(FreedRangeTest, a_store_to_it_while_it_turns_out_to_have_no_home_is_kept) {
  free_while_held();
  frames_->about_to_protect = [&] {
    blocks_.set_live(true);
    *frames_->at(BlockId(kFreed)) = std::byte{7};
  };
  EXPECT_TRUE(cache_->flush(*client_, BlockId(kFreed), 1));
  EXPECT_FALSE(frames_->about_to_protect) << "it was told";
  EXPECT_EQ(first_byte_after_eviction(), std::byte{7});
}

}  // namespace
}  // namespace spw::cache
