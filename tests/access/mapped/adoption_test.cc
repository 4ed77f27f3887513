#include <atomic>
#include <thread>
#include <vector>

#include "mapped_engine_fixture.h"

namespace spw::access {
namespace {

// From here on: managed space is the kernel's as long as all of it fits.
class UnwatchedTest : public MappedEngineTest {
 protected:
  bool watches_at_once() const override { return false; }

 public:
  // More than fits.
  void outgrow() { regions_->add_anonymous(kFirst + 512 * kMiB, uint64_t{kFrames} << block_shift()); }
};

TEST_F(UnwatchedTest, what_fits_is_left_to_the_kernel) {
  const uint64_t faults_before = counted(Counter::missing_faults), fills = counted(Counter::zero_fills);
  std::byte* base = add(kMiB);
  std::memset(base, 3, kMiB);
  EXPECT_FALSE(engine_->is_watching());
  EXPECT_EQ(counted(Counter::missing_faults), faults_before);
  EXPECT_EQ(counted(Counter::zero_fills), fills);
  EXPECT_TRUE(faults(kFirst + kMiB));
  regions_->remove(kFirst, kMiB);
  EXPECT_TRUE(faults(kFirst));
  EXPECT_EQ(add(kMiB)[4096], std::byte{0});
}

TEST_F(UnwatchedTest, what_is_there_is_taken_over_when_more_is_wanted_than_fits) {
  std::byte* base = add(2 * kMiB);
  engine_->advise_huge_pages(kFirst, 2 * kMiB, false);  // of which a whole one would be there
  const uint64_t adopted = counted(Counter::adoptions);
  for (uint64_t block = 0; block < 512; block += 3) base[block << kShift] = static_cast<std::byte>(block);
  outgrow();
  EXPECT_TRUE(engine_->is_watching());
  EXPECT_EQ(counted(Counter::adoptions) - adopted, 171u);
  for (uint64_t block = 0; block < 512; ++block)
    ASSERT_EQ(base[block << kShift], block % 3 == 0 ? static_cast<std::byte>(block) : std::byte{0});
  regions_->add_anonymous(kFirst + 64 * kMiB, 32 * kMiB);
  push_out(base + 64 * kMiB, 0);
  EXPECT_FALSE(is_resident(base));
  for (uint64_t block = 0; block < 512; block += 3)
    ASSERT_EQ(base[block << kShift], static_cast<std::byte>(block));
  engine_->stop();
  cache_->check_invariants();
}

TEST_F(UnwatchedTest, what_was_freed_before_is_dropped_and_can_be_had_again) {
  std::byte* base = add(kMiB);
  std::memset(base, 1, kMiB);
  regions_->remove(kFirst + 64 * 4096, kMiB - 64 * 4096);
  engine_->watch();
  EXPECT_EQ(add(kMiB)[100 * 4096], std::byte{0});
  EXPECT_EQ(base[4096], std::byte{1});
  base[100 * 4096] = std::byte{2};
}

TEST_F(UnwatchedTest, a_range_that_the_program_discards_reads_as_zeros) {
  std::byte* base = add(kMiB);
  std::memset(base, 1, kMiB);
  regions_->discard(kFirst, 4096);
  EXPECT_EQ(base[0], std::byte{0});
  EXPECT_EQ(base[4096], std::byte{1});
  engine_->watch();
  regions_->discard(kFirst + 4096, 4096);
  EXPECT_EQ(base[4096], std::byte{0});
  EXPECT_EQ(base[8192], std::byte{1});
}

TEST_F(UnwatchedTest, threads_that_store_and_free_meanwhile_notice_nothing) {
  std::byte* base = add(3 * kMiB);
  constexpr uint64_t kWords = 2 * kMiB / sizeof(uint64_t);
  auto* words = reinterpret_cast<uint64_t*>(base);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> rounds{0};
  std::thread counter([&] {
    for (uint64_t i = 0; !stop; ++i) {
      words[i * 513 % kWords] += 1;
      rounds = i + 1;
    }
  });
  std::thread freer([&] {
    constexpr uintptr_t kOwn = kFirst + 16 * kMiB;
    while (!stop) {
      regions_->add_anonymous(kOwn, 64 * 4096);
      auto* own = reinterpret_cast<volatile char*>(kOwn);
      for (int page = 0; page < 64; ++page) {
        ASSERT_EQ(own[page * 4096], 0);
        own[page * 4096] = 1;
      }
      regions_->remove(kOwn, 64 * 4096);
    }
  });
  while (rounds < 100'000) std::this_thread::yield();
  outgrow();
  const uint64_t then = rounds;
  while (rounds < then + 100'000) std::this_thread::yield();
  stop = true;
  counter.join();
  freer.join();
  EXPECT_TRUE(engine_->is_watching());
  uint64_t sum = 0;
  for (uint64_t i = 0; i < kWords; ++i) sum += words[i];
  EXPECT_EQ(sum, rounds);
}

TEST_F(UnwatchedTest, access_rights_that_the_program_chose_stay) {
  std::byte* base = add(kMiB);
  std::memset(base, 1, kMiB);
  ASSERT_EQ(protect(base + 4 * 4096, 4096, PROT_READ), 0);
  outgrow();
  EXPECT_TRUE(engine_->is_watching());
  EXPECT_TRUE(faults(kFirst + 4 * 4096));
  EXPECT_EQ(base[4 * 4096], std::byte{1});
  base[3 * 4096] = base[5 * 4096] = std::byte{2};
}

// A coroutine's, say, on memory of malloc.
TEST_F(UnwatchedTest, a_thread_whose_stack_is_managed_may_ask_for_more_than_fits) {
  if (!has_userfault()) GTEST_SKIP() << "a signal needs the stack of the thread that faults";
  std::byte* stack = add(kMiB);
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstack(&attributes, stack, kMiB), 0);
  pthread_t thread;
  auto body = [](void* test) -> void* {
    static_cast<UnwatchedTest*>(test)->outgrow();
    return test;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, this), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  EXPECT_TRUE(engine_->is_watching());
}

class UnwatchedManyTest : public UnwatchedTest {
 protected:
  uint32_t frames() const override { return 32768; }
};

TEST_F(UnwatchedManyTest, many_pieces_are_a_reason_to_watch_although_they_fit) {
  constexpr uint64_t kPieces = 20'000;
  auto* base = reinterpret_cast<std::byte*>(kFirst);
  uint64_t added = 0;
  for (; added < kPieces && !engine_->is_watching(); ++added) {
    regions_->add_anonymous(kFirst + 8192 * added, 4096);
    base[8192 * added] = std::byte{1};
  }
  EXPECT_TRUE(engine_->is_watching());
  EXPECT_GT(added, 10'000u);
  for (uint64_t i = 0; i < added; ++i) ASSERT_EQ(base[8192 * i], std::byte{1});
}

class UnwatchedLargeBlocksTest : public UnwatchedTest {
 protected:
  unsigned block_shift() const override { return 16; }
};

TEST_F(UnwatchedLargeBlocksTest, a_block_that_is_there_in_part_becomes_whole) {
  std::byte* base = add(kMiB);
  for (uint64_t page = 0; page < 16; page += 5) base[page * 4096] = static_cast<std::byte>(page + 1);
  base[kMiB - 1] = std::byte{9};
  const uint64_t adopted = counted(Counter::adoptions), misses = counted(Counter::fault_misses);
  engine_->watch();
  EXPECT_EQ(counted(Counter::adoptions) - adopted, 2u);
  for (uint64_t page = 0; page < 16; ++page)
    EXPECT_EQ(base[page * 4096], page % 5 == 0 ? static_cast<std::byte>(page + 1) : std::byte{0});
  EXPECT_EQ(base[kMiB - 1], std::byte{9});
  EXPECT_EQ(counted(Counter::fault_misses), misses);
}

}  // namespace
}  // namespace spw::access
