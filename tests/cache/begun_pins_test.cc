// Pins that are begun and ended later (cache/fills.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "cache/fills.h"
#include "cache/frame_pool/pool_frames.h"
#include "cache_fixture.h"
#include "platform/wake_fd.h"

namespace spw::cache {
namespace {

using telemetry::Counter;

class BegunPinsTest : public testing::Test {
 protected:
  static Options small(uint32_t frames) {
    Options options;
    options.frame_count = frames;
    options.partitions = 1;
    options.readahead_blocks_max = 0;
    return options;
  }
  void use(CacheFixture& f) {
    f_ = &f;
    fills_ = f.cache().open_fills();
    ASSERT_NE(fills_, nullptr);
  }
  Begun begin(uint64_t block, Access access = Access::kRead) {
    return f_->cache().begin_pin(f_->client(), *fills_, BlockId(block), access, block, &pin_, &status_);
  }
  // All of `count`, each as it comes.
  std::vector<EndedPin> end(size_t count) {
    f_->cache().start_fills(*fills_);
    std::vector<EndedPin> all;
    while (all.size() < count) {
      EndedPin some[4];
      const size_t got = f_->cache().end_pins(f_->client(), *fills_, some);
      all.insert(all.end(), some, some + got);
      std::vector<int> fds;
      const uint64_t timeout_ns = f_->cache().sleep_of_fills(*fills_, &fds);
      if (got == 0) platform::wait_readable(fds, timeout_ns);
    }
    return all;
  }
  CacheFixture* f_ = nullptr;
  Fills* fills_ = nullptr;
  Pin pin_;
  Status status_;
};

TEST_F(BegunPinsTest, many_are_in_flight_at_once) {
  CacheFixture f(small(256), "read:1+:delay:1000");
  use(f);
  for (uint64_t b = 0; b < 32; ++b) f.store_directly(7 * b, b + 1);
  const size_t room = f.cache().room_for_fills(*fills_);
  for (uint64_t b = 0; b < 32; ++b) ASSERT_EQ(begin(7 * b), Begun::kStarted);
  EXPECT_EQ(f.cache().room_for_fills(*fills_), room - 32);
  for (const EndedPin& ended : end(32)) {
    EXPECT_TRUE(ended.status.is_ok());
    EXPECT_TRUE(ended.pin.was_miss);
    EXPECT_EQ(*reinterpret_cast<const uint64_t*>(ended.pin.data), ended.tag / 7 + 1);
    f.cache().unpin(f.client(), ended.pin.frame);
  }
  EXPECT_EQ(f.cache().room_for_fills(*fills_), room);
}

TEST_F(BegunPinsTest, no_more_are_begun_than_there_is_room_for) {
  CacheFixture f(small(256));
  use(f);
  const size_t room = f.cache().room_for_fills(*fills_);
  for (uint64_t b = 0; b <= room; ++b) f.store_directly(3 * b, b);
  for (uint64_t b = 0; b < room; ++b) ASSERT_EQ(begin(3 * b), Begun::kStarted);
  EXPECT_EQ(begin(3 * room), Begun::kWouldWait);
  for (const EndedPin& ended : end(room)) f.cache().unpin(f.client(), ended.pin.frame);
}

TEST_F(BegunPinsTest, as_many_may_be_in_flight_as_a_share_of_the_frames_and_a_mib_of_large_blocks) {
  auto frames = PoolFrames::create(64, 12, false);
  ASSERT_TRUE(frames.is_ok());
  Atomic<uint64_t> bytes{0};
  const auto room = [&](uint32_t frame_count, unsigned shift) {
    return Fills(**frames, uint64_t{1} << shift, frame_count, bytes).room();
  };
  EXPECT_EQ(room(1024, 12), Fills::kFillsMax);
  EXPECT_EQ(room(64, 12), size_t{64} / Fills::kFramesShare);
  EXPECT_EQ(room(1024, 17), Fills::kStagingBytesMax >> 17);
  EXPECT_EQ(room(1024, 20), Fills::kFillsMin);
  EXPECT_EQ(room(16, 12), Fills::kFillsMin);
}

TEST_F(BegunPinsTest, the_memory_of_fills_is_counted) {
  CacheFixture f(small(64));
  const uint64_t before = f.cache().metadata_bytes();
  use(f);
  EXPECT_GE(f.cache().metadata_bytes() - before, f.cache().room_for_fills(*fills_) * sizeof(Fills::Fill));
}

TEST_F(BegunPinsTest, what_is_there_or_has_no_contents_is_pinned_at_once) {
  CacheFixture f(small(64));
  use(f);
  EXPECT_EQ(begin(1), Begun::kPinned);
  EXPECT_TRUE(pin_.was_filled);
  f.cache().unpin(f.client(), pin_.frame);
  EXPECT_EQ(begin(1, Access::kWrite), Begun::kPinned);
  EXPECT_TRUE(pin_.was_clean);
  f.cache().unpin(f.client(), pin_.frame);
}

TEST_F(BegunPinsTest, a_block_that_is_being_read_would_have_to_be_waited_for) {
  CacheFixture f(small(64));
  use(f);
  f.store_directly(1, 11);
  ASSERT_EQ(begin(1), Begun::kStarted);
  EXPECT_EQ(begin(1), Begun::kWouldWait);
  f.cache().unpin(f.client(), end(1)[0].pin.frame);
  EXPECT_EQ(f.read(1), 11u);
}

TEST_F(BegunPinsTest, a_pin_for_a_store_leaves_its_block_dirty) {
  CacheFixture f(small(64));
  use(f);
  f.store_directly(1, 11);
  ASSERT_EQ(begin(1, Access::kWrite), Begun::kStarted);
  f.cache().unpin(f.client(), end(1)[0].pin.frame);
  EXPECT_TRUE(f.cache().is_dirty(BlockId(1)));
}

TEST_F(BegunPinsTest, a_read_that_fails_is_told_and_leaves_no_frame_taken) {
  CacheFixture f(small(64), "read:1:EIO");
  use(f);
  f.store_directly(1, 11);
  ASSERT_EQ(begin(1), Begun::kStarted);
  EXPECT_EQ(end(1)[0].status.error(), EIO);
  std::vector<telemetry::TraceEntry> traced;
  telemetry::thread_counters().trace.read(0, traced);
  EXPECT_EQ(std::ranges::count(traced, telemetry::TraceEvent::kFailed, &telemetry::TraceEntry::event), 1);
  EXPECT_EQ(f.errors().size(), 1u);
  EXPECT_EQ(f.cache().free_frames(), f.cache().frame_count());
  EXPECT_EQ(f.read(1), 11u);
}

TEST_F(BegunPinsTest, a_store_whose_fills_have_ended_can_be_closed_and_used_again) {
  CacheFixture f(small(64));
  use(f);
  f.store_directly(1, 11);
  ASSERT_EQ(begin(1), Begun::kStarted);
  f.cache().unpin(f.client(), end(1)[0].pin.frame);
  f.cache().discard(f.client(), BlockId(1), 1);
  f.cache().close_store(f.client(), f.store());
  ASSERT_EQ(begin(1), Begun::kStarted);
  f.cache().unpin(f.client(), end(1)[0].pin.frame);
}

// Whoever reads a block ahead is kept while it takes the frame: with the combiner lock.
class HoldsTheLock final : public Observer {
 public:
  void came(BlockId block) override {
    if (block != kHeld) return;
    is_held_ = true;
    while (!may_go_) std::this_thread::yield();
  }
  void await_held() const {
    while (!is_held_) std::this_thread::yield();
  }
  void let_go() { may_go_ = true; }

  static constexpr BlockId kHeld{100};

 private:
  std::atomic<bool> is_held_{false}, may_go_{false};
};

TEST_F(BegunPinsTest, an_owner_is_not_waited_for) {
  HoldsTheLock holder;
  Options options = small(64);
  options.observer = &holder;
  CacheFixture f(options);
  use(f);
  for (uint64_t b : {uint64_t{1}, uint64_t{2}, HoldsTheLock::kHeld.value}) f.store_directly(b, b);
  ASSERT_EQ(begin(1), Begun::kStarted);
  std::thread other([&] {
    Client* client = *f.cache().open_client();
    f.cache().prefetch(*client, HoldsTheLock::kHeld, 1);
    f.cache().close_client(client);
  });
  holder.await_held();
  EXPECT_EQ(begin(2), Begun::kWouldWait);
  EXPECT_EQ(f.cache().try_pin(f.client(), BlockId(2), Access::kRead, &pin_, &status_), Begun::kWouldWait);
  f.cache().prefetch_at_once(f.client(), BlockId(2), 1);
  f.cache().unpin(f.client(), end(1)[0].pin.frame);
  EXPECT_FALSE(f.cache().is_resident(BlockId(2)));
  holder.let_go();
  other.join();
  ASSERT_EQ(begin(2), Begun::kStarted);
  f.cache().unpin(f.client(), end(1)[0].pin.frame);
}

TEST_F(BegunPinsTest, a_pin_that_is_tried_waits_for_its_own_read_alone) {
  CacheFixture f(small(64));
  use(f);
  f.store_directly(1, 11);
  f.store_directly(2, 22);
  ASSERT_EQ(begin(1), Begun::kStarted);
  EXPECT_EQ(f.cache().try_pin(f.client(), BlockId(1), Access::kRead, &pin_, &status_), Begun::kWouldWait);
  ASSERT_EQ(f.cache().try_pin(f.client(), BlockId(2), Access::kRead, &pin_, &status_), Begun::kPinned);
  EXPECT_TRUE(pin_.was_miss);
  EXPECT_EQ(*reinterpret_cast<const uint64_t*>(pin_.data), 22u);
  f.cache().unpin(f.client(), pin_.frame);
  f.cache().unpin(f.client(), end(1)[0].pin.frame);
}

}  // namespace
}  // namespace spw::cache
