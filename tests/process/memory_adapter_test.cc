#include "process/memory_adapter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "../cache/cache_fixture.h"
#include "base/units.h"
#include "platform/machine.h"
#include "platform/time.h"

namespace spw::process {
namespace {

constexpr uint32_t kFramesMax = 1 << 20;
constexpr uint64_t kFrame = 4096;
constexpr uint64_t kMachine = 16 * kGiB;  // so the reserve is 1 GiB

AdaptiveLimit rule() { return AdaptiveLimit(kFramesMax, kFrame, kMachine); }

// The limit after so many periods in which all three grow by the same every time.
uint32_t after(AdaptiveLimit& rule, unsigned periods, AdaptiveLimit::Sample from, AdaptiveLimit::Sample step,
               int64_t available_step, uint32_t limit) {
  for (unsigned i = 0; i < periods; ++i) {
    limit = rule.next(from, limit);
    from.used_frames += step.used_frames;
    from.filled_blocks += step.filled_blocks;
    from.available_bytes += static_cast<uint64_t>(available_step);
  }
  return limit;
}

TEST(AdaptiveLimit, a_quiet_program_keeps_its_limit) {
  auto r = rule();
  EXPECT_EQ(after(r, 20, {1000, 50'000, 8 * kGiB}, {}, 0, 300'000), 300'000u);
}

TEST(AdaptiveLimit, memory_that_others_took_is_given_back_at_once) {
  auto r = rule();
  // Half a GiB below the reserve: so much less than is in use.
  EXPECT_EQ(r.next({500'000, 0, kGiB / 2}, 600'000), 500'000u - (kGiB / 2) / kFrame);
}

TEST(AdaptiveLimit, memory_that_others_are_taking_is_given_back_before_it_lacks) {
  auto r = rule();
  // 256 MiB a period from 3 GiB on: the reserve is reached within ten periods.
  uint32_t limit = after(r, 3, {500'000, 0, 3 * kGiB}, {}, -256 * static_cast<int64_t>(kMiB), 600'000);
  EXPECT_LT(limit, 500'000u);
}

TEST(AdaptiveLimit, blocks_that_come_without_free_frames_raise_the_limit_while_much_is_available) {
  auto r = rule();
  uint32_t limit = after(r, 4, {300'000, 0, 8 * kGiB}, {0, 20'000, 0}, 0, 300'000);
  EXPECT_GT(limit, 300'000u);
  EXPECT_LE(limit, kFramesMax);
}

// Also of a program that goes through far more than there is.
TEST(AdaptiveLimit, growth_is_at_most_half_of_what_is_spare) {
  for (const uint64_t filled_blocks : {9'000u, 900'000u}) {
    auto r = rule();
    (void)r.next({100'000, 0, kGiB + 400 * kMiB}, 100'000);
    EXPECT_EQ(r.next({100'000, filled_blocks, kGiB + 400 * kMiB}, 100'000), 100'000u + 200 * kMiB / kFrame);
  }
}

// One that frees what it fills has frames to spare, and goes on filling.
TEST(AdaptiveLimit, what_was_granted_and_is_not_used_yet_counts) {
  for (const uint64_t spare : {100'000u, 250'000u, 600'000u}) {
    auto r = rule();
    const uint32_t limit = after(r, 20, {100'000, 0, kGiB + spare * kFrame}, {0, 100'000, 0}, 0, 150'000);
    EXPECT_LE(limit, std::max<uint64_t>(150'000, 100'000 + spare));
    EXPECT_GT(limit, 150'000u);
  }
}

TEST(AdaptiveLimit, small_changes_are_not_worth_it) {
  auto r = rule();
  EXPECT_EQ(r.next({500'000, 0, kGiB - kMiB}, 500'001), 500'001u);
}

TEST(AdaptiveLimit, the_last_small_step_up_to_the_most_is_taken) {
  auto r = rule();
  EXPECT_EQ(after(r, 4, {kFramesMax - 1000, 0, 8 * kGiB}, {0, 20'000, 0}, 0, kFramesMax - 1000), kFramesMax);
}

TEST(AdaptiveLimit, the_limit_stays_within_its_bounds) {
  auto r = rule();
  EXPECT_EQ(r.next({100'000, 0, 0}, 100'000), kFramesMax / AdaptiveLimit::kLimitShareMin);
  auto other = rule();
  EXPECT_LE(after(other, 30, {900'000, 0, 64 * kGiB}, {0, 500'000, 0}, 0, 1'000'000), kFramesMax);
}

// UMap, section 3.1.1: N = 5 and M = 10.
TEST(AdaptiveLimit, five_periods_of_history_predict_ten) {
  static_assert(AdaptiveLimit::kHistory == 5 && AdaptiveLimit::kHorizon == 10);
  constexpr uint64_t kStep = 64 * kMiB;
  // After two readings the others' step is known: ten more of them leave a frame of what is spare, or lack one.
  for (const uint64_t left : {kGiB + 10 * kStep + kFrame, kGiB + 10 * kStep - kFrame}) {
    auto r = rule();
    (void)r.next({300'000, 0, left + kStep}, 600'000);
    const uint32_t limit = r.next({300'000, 0, left}, 600'000);
    if (left > kGiB + 10 * kStep)
      EXPECT_EQ(limit, 600'000u);
    else
      EXPECT_LT(limit, 300'000u);
  }
}

TEST(AdaptiveLimit, what_happened_more_than_five_periods_ago_is_forgotten) {
  auto r = rule();
  (void)r.next({300'000, 0, 4 * kGiB}, 600'000);
  // 2 GiB went at once: on the average of five periods 0.4, of which ten more would not leave enough.
  for (unsigned period = 1; period <= 5; ++period)
    EXPECT_LT(r.next({300'000, 0, 2 * kGiB}, 600'000), 600'000u) << period;
  EXPECT_EQ(r.next({300'000, 0, 2 * kGiB}, 600'000), 600'000u);
}

// An engine that only notes that it was told to watch.
class FakeEngine final : public access::Engine {
 public:
  explicit FakeEngine(cache::Client& client) : client_(client) {}
  const char* name() const override { return "fake"; }
  cache::Client& client() override { return client_; }
  access::Window hold(uintptr_t, size_t, cache::Access) override { return {}; }
  bool release(const access::Window&) override { return false; }
  void grow(BlockId, uint64_t, uint64_t, bool) override {}
  void grown(BlockId, uint64_t) override {}
  void watch() override { watching_ = true; }
  bool is_watching() const override { return watching_; }
  bool admit_fault(uintptr_t, bool, bool) override { return false; }
  InChild forked() override { return InChild::kRefused; }
  uint64_t metadata_bytes() const override { return 0; }
  access::Window pin(uintptr_t, size_t, cache::Access) override { return {}; }
  void unpin(const access::Window&) override {}

 protected:
  bool withdraw(BlockId, uint64_t) override { return false; }
  void before_flush(BlockId, uint64_t) override {}

 private:
  cache::Client& client_;
  std::atomic<bool> watching_{false};
};

class MemoryAdapterTest : public testing::Test {
 protected:
  static constexpr uint32_t kFrames = 4096;
  static constexpr uint64_t kReserve = kMachine / AdaptiveLimit::kReserveShare;

  void SetUp() override {
    use(kFrames);
    ASSERT_TRUE(adapter_.start());
  }
  void TearDown() override { adapter_.stop(); }
  void use(uint64_t blocks) {
    for (uint64_t block = 0; block < blocks; ++block) ASSERT_TRUE(cache_.write(block, block));
  }
  template <class IsSo>
  void until(IsSo is_so) {
    const uint64_t deadline_ns = platform::monotonic_ns() + 60'000'000'000;
    while (!is_so()) {
      ASSERT_LT(platform::monotonic_ns(), deadline_ns);
      std::this_thread::yield();
    }
  }
  uint32_t limit() { return cache_.cache().frame_limit(); }

  cache::CacheFixture cache_{cache::small_cache(kFrames)};
  cache::CounterDelta counted_;
  FakeEngine engine_{cache_.client()};
  std::atomic<uint64_t> available_bytes_{8 * kGiB};
  MemoryAdapter adapter_{cache_.cache(),
                         engine_,
                         kFrame,
                         {kMachine, [this] { return available_bytes_.load(); },
                          [this] { return cache_.cache().used_frames() * kFrame; }, 1'000'000}};
};

TEST_F(MemoryAdapterTest, pressure_makes_the_limit_fall_and_its_end_lets_it_rise) {
  // Of the reserve lacks as much as half of what is in use.
  available_bytes_ = kReserve - kFrames / 2 * kFrame;
  until([&] { return limit() <= kFrames / 2; });
  EXPECT_TRUE(engine_.is_watching());
  // What was dirty goes when it has been written, and the room keeper asks for it again.
  until([&] {
    cache_.cache().make_room(cache_.client(), 0, 0);
    return counted_(telemetry::Counter::evictions) >= kFrames / 2;
  });
  until([&] { return counted_(telemetry::Counter::limit_changes) > 0; });
  available_bytes_ = 8 * kGiB;
  until([&] {
    use(kFrames);
    return limit() == kFrames;
  });
  for (uint64_t block = 0; block < kFrames; ++block) ASSERT_EQ(cache_.read(block), block);
}

TEST_F(MemoryAdapterTest, the_limit_does_not_fall_below_its_share) {
  available_bytes_ = 0;
  until([&] { return limit() == kFrames / AdaptiveLimit::kLimitShareMin; });
  use(2 * kFrames);
  EXPECT_EQ(limit(), kFrames / AdaptiveLimit::kLimitShareMin);
}

TEST(AvailableMemory, is_no_more_than_the_machine_has) {
  auto total = platform::memory_total_bytes();
  ASSERT_TRUE(total);
  EXPECT_GT(available_memory_bytes(), 0u);
  EXPECT_LE(available_memory_bytes(), *total);
}

}  // namespace
}  // namespace spw::process
