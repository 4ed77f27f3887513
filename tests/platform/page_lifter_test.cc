// Pages that leave their addresses together: what they held, also when a thread stores to them meanwhile.
#include "platform/page_lifter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "base/units.h"
#include "platform/memory.h"

namespace spw::platform {
namespace {

constexpr size_t kPages = PageLifter::kPagesMax;

class PageLifterTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!lifter_.is_able())
      GTEST_SKIP() << "no process_madvise() of one's own memory (Linux 6.13), or swap on zram";
    pages_ = std::move(*map_anonymous(2 * kPages * kMmuPageBytes));
    memory_ = std::move(*map_anonymous(kPages * kMmuPageBytes));
    for (size_t i = 0; i < kPages; ++i) {
      // Every other page, the last first.
      const size_t page = kPages - 1 - i;
      from_.push_back({pages_.data() + 2 * page * kMmuPageBytes, kMmuPageBytes});
      to_.push_back({memory_.data() + i * kMmuPageBytes, kMmuPageBytes});
      std::memset(from_[i].iov_base, static_cast<int>(page) + 1, kMmuPageBytes);
    }
  }
  static unsigned char first(const iovec& page) { return *static_cast<unsigned char*>(page.iov_base); }

  RangeReleaser releaser_;
  PageLifter lifter_{releaser_};
  Mapping pages_, memory_;
  std::vector<iovec> from_, to_;
};

TEST_F(PageLifterTest, have_what_they_had_and_are_gone) {
  for (int again = 0; again < 3; ++again) {
    for (size_t i = 0; i < kPages; ++i) std::memset(from_[i].iov_base, static_cast<int>(i) + again, 100);
    ASSERT_TRUE(lifter_.lift(from_, to_));
    for (size_t i = 0; i < kPages; ++i) {
      ASSERT_EQ(first(to_[i]), i + static_cast<unsigned>(again));
      ASSERT_EQ(first(from_[i]), 0) << "private memory that is given up reads as zeros";
    }
  }
}

TEST_F(PageLifterTest, are_not_more_than_a_pipe_has_room_for) {
  EXPECT_FALSE(lifter_.lift(std::vector<iovec>(kPages + 1), to_));
  EXPECT_EQ(first(from_[0]), kPages);
  const RangeReleaser one_by_one(RangeReleaser::Calls::kOneByOne);
  EXPECT_FALSE(PageLifter(one_by_one).is_able());
}

TEST_F(PageLifterTest, stay_where_one_of_them_cannot_be_read) {
  from_[kPages / 2].iov_base = reinterpret_cast<void*>(uintptr_t{kMmuPageBytes});
  // Each of the pipes fails once, and is used no more.
  for (int pipe = 0; pipe < 4; ++pipe) {
    EXPECT_TRUE(lifter_.is_able());
    EXPECT_FALSE(lifter_.lift(from_, to_));
    EXPECT_EQ(first(from_[0]), kPages);
    EXPECT_EQ(first(from_[kPages - 1]), 1);
  }
  EXPECT_FALSE(lifter_.lift(from_, to_));
  EXPECT_FALSE(lifter_.is_able());
}

// Whoever counts finds each of his counts either in what was lifted or in what is there now.
TEST_F(PageLifterTest, lose_no_store_that_comes_meanwhile) {
  constexpr uint64_t kCounts = 20'000'000;
  auto* const counter = static_cast<uint64_t*>(from_[7].iov_base);
  *counter = 0;
  std::atomic<bool> is_over{false};
  std::thread counts([&] {
    for (uint64_t i = 0; i < kCounts; ++i) __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
    is_over = true;
  });
  uint64_t lifted = 0, times = 0;
  while (!is_over) {
    // Until the page is one of its own: what is only read of fresh memory is the kernel's page of zeros, which all have
    // in common.
    if (__atomic_load_n(counter, __ATOMIC_RELAXED) == 0) continue;
    const bool is_lifted = lifter_.lift(from_, to_);
    if (is_lifted) lifted += *static_cast<uint64_t*>(to_[7].iov_base);
    times += is_lifted;
  }
  counts.join();
  EXPECT_GE(times, 3u);
  EXPECT_EQ(lifted + *counter, kCounts);
}

TEST_F(PageLifterTest, may_be_of_more_threads_than_there_are_pipes) {
  // Mapped here and until all are over: what one thread has unmapped would be another's, which tsan cannot tell.
  constexpr size_t kThreads = 8;
  const auto memory = std::move(*map_anonymous(2 * kThreads * kMmuPageBytes));
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([this, own = memory.data() + 2 * thread * kMmuPageBytes] {
      const iovec page{own, kMmuPageBytes}, to{own + kMmuPageBytes, kMmuPageBytes};
      for (int i = 0; i < 200; ++i) {
        std::memset(page.iov_base, i + 1, kMmuPageBytes);
        ASSERT_TRUE(lifter_.lift({&page, 1}, {&to, 1}));
        ASSERT_EQ(first(to), static_cast<unsigned char>(i + 1));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace spw::platform
