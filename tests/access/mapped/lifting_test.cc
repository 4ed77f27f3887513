// Dirty blocks that leave their addresses to be written (cache/writeback/lifting.cc).
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "mapped_engine_fixture.h"
#include "platform/userfault.h"

namespace spw::access {
namespace {

class Lifting : public MappedEngineTest {
 protected:
  static constexpr uint64_t kBlocks = 4 * kFrames;

  void SetUp() override {
    if (!has_userfault()) GTEST_SKIP() << "blocks are lifted where userfaultfd puts them in place";
    if (!platform::RangeReleaser().is_vectored())
      GTEST_SKIP() << "process_madvise() of one's own memory came with Linux 6.13";
    MappedEngineTest::SetUp();
  }
  bool reads_ahead() const override { return false; }
  void (*tells_errors() const)(void*, const Status&) override {
    return [](void*, const Status&) {};
  }

  volatile uint64_t& word(uint64_t block) {
    return *reinterpret_cast<volatile uint64_t*>(kFirst + (block << kShift));
  }
  // Blocks in an order in which no two neighbours follow each other.
  static uint64_t nth(uint64_t i) { return i * 997 % kBlocks; }
  // Counts in all of them, some times, so that what is evicted is dirty and lies apart.
  void count_in_all(uint64_t times) {
    for (uint64_t i = 0; i < times * kBlocks; ++i) word(nth(i)) = word(nth(i)) + 1;
  }
  void expect_all(uint64_t counts) {
    for (uint64_t block = 0; block < kBlocks; ++block) ASSERT_EQ(word(block), counts) << block;
  }
  static uint64_t lifted() { return counted(Counter::lifted_blocks); }
};

TEST_F(Lifting, writes_what_was_stored) {
  add(kBlocks << kShift);
  const uint64_t before = lifted();
  count_in_all(3);
  EXPECT_GE(lifted() - before, kBlocks);
  expect_all(3);
}

// They are back in place when somebody wants them, however far their write is.
TEST_F(Lifting, loses_no_count_of_threads_that_want_them_back) {
  constexpr uint64_t kThreads = 4, kRounds = 40, kHot = kFrames;
  add(kBlocks << kShift);
  const uint64_t before = lifted();
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([this, thread] {
      for (uint64_t i = 0; i < kRounds * kHot; ++i) {
        auto* const hot = const_cast<uint64_t*>(&word(nth(i % kHot)));
        (void)__atomic_load_n(hot, __ATOMIC_RELAXED);  // it may come back for a load
        __atomic_fetch_add(hot + thread, 1, __ATOMIC_RELAXED);
        if (i % 2 == 0) word(nth(kHot + (i * kThreads + thread) % (kBlocks - kHot))) = i;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(lifted() - before, kFrames);
  for (uint64_t i = 0; i < kHot; ++i)
    for (uint64_t thread = 0; thread < kThreads; ++thread) ASSERT_EQ((&word(nth(i)))[thread], kRounds) << i;
}

TEST_F(Lifting, keeps_what_cannot_be_written) {
  add(kBlocks << kShift);
  count_in_all(1);
  const uint64_t before = lifted();
  const uint64_t next = plan_.requests(store::Op::kWrite) + 1;
  for (uint64_t i = 0; i < 12; ++i)
    ASSERT_TRUE(plan_.add("write:" + std::to_string(next + 7 * i) + ":EIO").is_ok());
  count_in_all(1);
  EXPECT_GT(plan_.requests(store::Op::kWrite), next + 7 * 12);
  EXPECT_GT(lifted(), before);
  expect_all(2);
}

// What is given up while it is written does not come back.
TEST_F(Lifting, gives_up_what_is_discarded) {
  std::byte* const base = add(kBlocks << kShift);
  for (int again = 0; again < 4; ++again) {
    count_in_all(1);
    regions_->discard(reinterpret_cast<uintptr_t>(base), kBlocks << kShift);
    expect_all(0);
  }
  EXPECT_GT(lifted(), 0u);
}

// It may be the kernel's page of zeros, of which a store makes a copy.
TEST_F(Lifting, is_not_of_what_is_zero) {
  add(kBlocks << kShift);
  const uint64_t before = lifted(), left_out = counted(Counter::zeros_left_out);
  for (uint64_t i = 0; i < 2 * kBlocks; ++i) word(nth(i)) = 0;
  EXPECT_EQ(lifted(), before);
  EXPECT_GE(counted(Counter::zeros_left_out) - left_out, kBlocks);
}

TEST_F(Lifting, is_awaited_by_a_flush) {
  add(kBlocks << kShift);
  count_in_all(1);
  const BlockId first(region::kFirstBytes >> kShift);
  ASSERT_TRUE(cache_->flush(engine_->client(), first, kBlocks).is_ok());
  for (uint64_t block = 0; block < kBlocks; ++block) {
    EXPECT_FALSE(cache_->is_dirty(first + block));
    uint64_t found = 0;
    store::Request request;
    request.op = store::Op::kRead;
    request.offset_bytes = regions_->locate_for_fill(first + block).offset_bytes;
    alignas(1 << kShift) std::byte bytes[1 << kShift];
    request.segments[0] = {bytes, sizeof bytes};
    request.segment_count = 1;
    const Status moved = store_->transfer(request);
    ASSERT_TRUE(moved.is_ok()) << moved.message();
    std::memcpy(&found, bytes, sizeof found);
    ASSERT_EQ(found, 1u) << block;
  }
}

// Nothing is when its range has rights that the program has chosen: the kernel could not read it, either.
TEST_F(Lifting, is_not_of_what_the_program_protects) {
  std::byte* const base = add(kBlocks << kShift);
  count_in_all(1);
  ASSERT_EQ(protect(base, kMmuPageBytes, PROT_NONE), 0);
  const uint64_t before = lifted();
  for (uint64_t i = 1; i < 2 * kBlocks; ++i)
    if (nth(i) != 0) word(nth(i)) = 2;
  EXPECT_EQ(lifted(), before);
  ASSERT_EQ(protect(base, kMmuPageBytes, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(word(0), 1u);
}

// Who forks may want one back. The last test: nothing is lifted in this process from here on.
TEST_F(Lifting, comes_back_to_a_thread_that_forks) {
  const std::byte* const base = add(kBlocks << kShift);
  const BlockId first(region::kFirstBytes >> kShift);
  count_in_all(1);
  engine_->lock_for_fork();
  uint64_t found = 0;
  for (uint64_t block = 0; block < kBlocks; ++block) {
    if (is_resident(const_cast<std::byte*>(base) + (block << kShift))) continue;
    bool is_cached = false;
    for (uint32_t frame = 0; frame < kFrames && !is_cached; ++frame)
      is_cached = cache_->holds({FrameId(frame), first + block});
    if (!is_cached) continue;
    ++found;
    EXPECT_EQ(word(block), 1u);
  }
  engine_->unlock_after_fork();
  EXPECT_GE(found, 4u);
}

}  // namespace
}  // namespace spw::access
