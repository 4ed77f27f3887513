#include "access/translate/resident_view.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "../../cache/cache_fixture.h"
#include "abi/abi.h"
#include "access/engine.h"
#include "platform/memory.h"

namespace spw::access {
namespace {

using cache::Access;

constexpr uint32_t kFrames = 4096;

class ResidentViewTest : public testing::Test {
 protected:
  ResidentViewTest() {
    cache::Options options;
    options.frame_count = kFrames;
    options.partitions = 4;
    options.no_frame = &ResidentViewTest::give_up;
    options.frame_wait_ns_max = 5'000'000'000;
    fixture_ = std::make_unique<cache::CacheFixture>(options);
    auto space = platform::reserve_range(SPW_MANAGED_BASE, cache::kBlocks << 12);
    SPW_CHECK(space.is_ok());
    space_ = std::move(*space);
    view_ = std::make_unique<ResidentView>(cache(), fixture_->blocks(), *cache().frames_file(), 12);
    other_ = *cache().open_client(cache::Uses::kSeen);
    self_ = this;
    SPW_CHECK(::pipe2(pipe_, O_CLOEXEC) == 0);
  }
  ~ResidentViewTest() override {
    if (view_) EXPECT_TRUE(view_->end(fixture_->client()).is_ok());
    self_ = nullptr;
    cache().close_client(other_);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }

  cache::SharedCache& cache() { return fixture_->cache(); }
  static void give_up() {
    if (self_) EXPECT_TRUE(self_->view_->end(*self_->other_).is_ok());
  }
  static uint64_t address(uint64_t block) { return SPW_MANAGED_BASE + (block << 12); }
  static uint64_t& word(uint64_t block) { return *reinterpret_cast<uint64_t*>(address(block)); }
  void admit(uint64_t block, bool store) {
    auto admitted = view_->admit(fixture_->client(), address(block), store);
    ASSERT_TRUE(admitted.is_ok()) << admitted.status().message();
    ASSERT_EQ(*admitted, ResidentView::Admission::kServed);
  }
  // Asked of the kernel, which says so instead of a signal.
  bool can_load(uint64_t block) {
    char byte;
    return ::write(pipe_[1], reinterpret_cast<void*>(address(block)), 1) == 1 &&
           ::read(pipe_[0], &byte, 1) == 1;
  }
  // Stores a zero where it can.
  bool can_store(uint64_t block) {
    EXPECT_EQ(::write(pipe_[1], "", 1), 1);
    char byte;
    return ::read(pipe_[0], reinterpret_cast<void*>(address(block) + 4000), 1) == 1 ||
           ::read(pipe_[0], &byte, 1) != 1;
  }

  static inline ResidentViewTest* self_ = nullptr;
  std::unique_ptr<cache::CacheFixture> fixture_;
  cache::Client* other_ = nullptr;
  platform::Mapping space_;
  std::unique_ptr<ResidentView> view_;
  int pipe_[2];
};

TEST_F(ResidentViewTest, a_touched_block_is_at_its_own_address_and_in_its_frame) {
  admit(100, true);
  word(100) = 77;
  cache::Pin pin;
  ASSERT_TRUE(cache().pin(fixture_->client(), BlockId(100), Access::kWrite, &pin).is_ok());
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(pin.data), 77u);
  *reinterpret_cast<uint64_t*>(pin.data) = 78;
  EXPECT_EQ(word(100), 78u);
  cache().unpin(fixture_->client(), pin.frame);
}

TEST_F(ResidentViewTest, the_first_touch_of_a_new_window_brings_all_of_it) {
  admit(70, true);
  EXPECT_FALSE(can_load(63)) << "another window";
  EXPECT_TRUE(can_store(64));
  EXPECT_TRUE(can_store(127));
  EXPECT_FALSE(can_load(128)) << "another window";
}

TEST_F(ResidentViewTest, the_second_touch_of_a_window_with_contents_brings_all_of_it) {
  for (uint64_t block = 64; block < 128; ++block) {
    fixture_->store_directly(block, block);
    EXPECT_EQ(fixture_->read(block), block);  // it is there
  }
  admit(64, false);
  EXPECT_TRUE(can_load(64 + kFirstTouchBlocks - 1));
  EXPECT_FALSE(can_load(64 + kFirstTouchBlocks));
  admit(80, false);
  EXPECT_TRUE(can_load(127));
  EXPECT_FALSE(can_store(127));
  EXPECT_FALSE(can_load(128)) << "another window";
}

TEST_F(ResidentViewTest, what_comes_from_a_store_is_read_only_until_the_first_store_to_it) {
  fixture_->store_directly(10, 55);
  admit(10, false);
  EXPECT_EQ(word(10), 55u);
  EXPECT_FALSE(can_store(10));
  admit(10, true);
  word(10) = 56;
  ASSERT_TRUE(cache().flush(fixture_->client(), BlockId(10), 1).is_ok());
  EXPECT_EQ(fixture_->stored(10), 56u);
}

TEST_F(ResidentViewTest, a_block_of_no_region_is_not_served) {
  auto admitted = view_->admit(fixture_->client(), address(cache::kBlocks), false);
  ASSERT_TRUE(admitted.is_ok());
  EXPECT_EQ(*admitted, ResidentView::Admission::kEnded);
}

TEST_F(ResidentViewTest, a_withdrawn_range_is_neither_mapped_nor_pinned) {
  admit(0, true);
  admit(9, true);
  admit(70, true);
  ASSERT_TRUE(view_->withdraw(fixture_->client(), BlockId(8), 64).is_ok());
  EXPECT_TRUE(can_load(7));
  EXPECT_FALSE(can_load(8));
  EXPECT_FALSE(can_load(70));
  cache().discard(fixture_->client(), BlockId(8), 64);
  admit(8, true);
  EXPECT_EQ(word(8), 0u);
}

TEST_F(ResidentViewTest, its_end_leaves_nothing_mapped_and_loses_nothing) {
  for (uint64_t block = 0; block < 1000; ++block) {
    admit(block, true);
    word(block) = block + 1;
  }
  ASSERT_TRUE(view_->end(fixture_->client()).is_ok());
  EXPECT_FALSE(view_->is_active());
  for (uint64_t block = 0; block < 1000; ++block) EXPECT_FALSE(can_load(block)) << block;
  auto late = view_->admit(fixture_->client(), address(3), true);
  ASSERT_TRUE(late.is_ok());
  EXPECT_EQ(*late, ResidentView::Admission::kEnded);
  // Everything can be evicted now, and comes back as it was.
  for (uint64_t block = 0; block < kFrames; ++block)
    EXPECT_TRUE(fixture_->write(10'000 + block, block).is_ok());
  for (uint64_t block = 0; block < 1000; ++block) {
    cache::Pin pin;
    ASSERT_TRUE(cache().pin(fixture_->client(), BlockId(block), Access::kRead, &pin).is_ok());
    EXPECT_EQ(*reinterpret_cast<uint64_t*>(pin.data), block + 1);
    cache().unpin(fixture_->client(), pin.frame);
  }
}

TEST_F(ResidentViewTest, a_client_that_finds_no_frame_ends_it) {
  for (uint64_t block = 0; block < kFrames - 64; ++block) admit(block, true);
  for (uint64_t block = 0; block < 1000; ++block) EXPECT_TRUE(fixture_->write(10'000 + block, block).is_ok());
  EXPECT_FALSE(view_->is_active());
  EXPECT_TRUE(fixture_->errors().empty());
}

TEST(SurelyFits, as_long_as_an_eighth_of_the_frames_is_left) {
  EXPECT_TRUE(access::surely_fits((uint64_t{kFrames} << 12) / 8 * 7, kFrames, 12));
  EXPECT_FALSE(access::surely_fits(uint64_t{kFrames} << 12, kFrames, 12));
}

// Those of the managed space, what lies between them included.
uint64_t mappings_of_kernel() {
  std::ifstream maps("/proc/self/maps");
  uint64_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    const uint64_t begin = std::strtoull(line.c_str(), nullptr, 16);
    if (begin >= SPW_MANAGED_BASE && begin < SPW_MANAGED_BASE + (cache::kBlocks << 12)) ++count;
  }
  return count;
}

TEST_F(ResidentViewTest, it_counts_no_fewer_mappings_than_the_kernel_has) {
  const uint64_t before = mappings_of_kernel();
  EXPECT_EQ(before, 1u);
  for (uint64_t block = 0; block < 2000; block += 64) admit(block, true);  // a part of each window
  EXPECT_GE(view_->mappings() + before, mappings_of_kernel());
  for (uint64_t block = 2048; block < 2500; ++block) {
    fixture_->store_directly(block, block);
    admit(block, false);
  }
  for (uint64_t block = 2049; block < 2500; block += 2) admit(block, true);  // rights that alternate
  EXPECT_GE(view_->mappings() + before, mappings_of_kernel());
  for (uint64_t block = 0; block < 2500; block += 96)
    ASSERT_TRUE(view_->withdraw(fixture_->client(), BlockId(block), 48).is_ok());
  EXPECT_GE(view_->mappings() + before, mappings_of_kernel());
  ASSERT_TRUE(view_->withdraw(fixture_->client(), BlockId(0), 2560).is_ok());
  EXPECT_EQ(view_->mappings(), 0u);
  EXPECT_EQ(mappings_of_kernel(), before);
}

TEST_F(ResidentViewTest, who_sees_that_it_ended_may_map_there) {
  constexpr uint64_t kStep = 128,
                     kEnd = 2 * kFrames;  // every other window, so that each is unmapped by itself
  for (uint64_t block = 0; block < kEnd; block += kStep) admit(block, true);
  cache::Pin pin;
  ASSERT_TRUE(cache().pin(*other_, BlockId(0), Access::kRead, &pin).is_ok());
  std::atomic<bool> looks{false};
  std::thread other([&] {
    for (looks = true; view_->is_active();) {
    }
    for (uint64_t block = kEnd; block > 0; block -= kStep)
      EXPECT_TRUE(platform::map_file_at(reinterpret_cast<void*>(address(block - kStep)),
                                        *cache().frames_file(), uint64_t{pin.frame.value} << 12, 4096,
                                        platform::Protection::kRead)
                      .is_ok());
  });
  while (!looks) {
  }
  EXPECT_TRUE(view_->end(fixture_->client()).is_ok());
  other.join();
  for (uint64_t block = 0; block < kEnd; block += kStep) EXPECT_TRUE(can_load(block)) << block;
  cache().unpin(*other_, pin.frame);
}

// Threads touch blocks, take ranges back and end the view in the middle of it.
TEST_F(ResidentViewTest, threads_and_its_end_agree) {
  constexpr int kThreads = 4;
  constexpr uint64_t kShare = 512;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      cache::Client* client = *cache().open_client(cache::Uses::kSeen);
      Rng rng(static_cast<uint64_t>(t));
      for (int i = 0; i < 3000; ++i) {
        const uint64_t block = rng.below(kShare * kThreads);
        auto admitted = view_->admit(*client, address(block), rng.below(2) != 0);
        EXPECT_TRUE(admitted.is_ok());
        if (rng.below(64) == 0) {
          const uint64_t first = static_cast<uint64_t>(t) * kShare + rng.below(kShare - 100);
          EXPECT_TRUE(view_->withdraw(*client, BlockId(first), rng.below(100) + 1).is_ok());
        }
        if (t == 0 && i == 2000) EXPECT_TRUE(view_->end(*client).is_ok());
      }
      cache().close_client(client);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(view_->is_active());
  for (uint64_t block = 0; block < kShare * kThreads; ++block) EXPECT_FALSE(can_load(block)) << block;
  for (uint64_t block = 0; block < 2 * kFrames; ++block)
    EXPECT_TRUE(fixture_->write(10'000 + block, block).is_ok());
}

}  // namespace
}  // namespace spw::access
