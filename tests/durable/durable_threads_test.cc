// Threads that really run at once: transfers between accounts, with locks that are released before the section ends.
#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "durable/block_writes.h"
#include "durable/check.h"
#include "durable/pmem.h"
#include "durable/regions.h"
#include "platform/file.h"
#include "platform/memory.h"

namespace spw::durable {
namespace {

constexpr unsigned kAccounts = 8, kThreads = 4;

class NoGrowth final : public Grower {
 public:
  Status grow_to(uint64_t) override { return Status::sentence(ENOSPC, "it is full"); }
};

class ThreadsTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    LayoutOptions layout;
    layout.capacity_bytes = 16 * kMiB;
    layout.slots = kThreads + 1;
    layout.segment_bytes = 4096;
    memory_ = std::move(*platform::map_anonymous(layout.capacity_bytes, kChunkBytes));
    view_ = format_memory(memory_.data(), layout, 8 * kMiB);
    file_ = std::move(*platform::open_spill_file(testing::TempDir()));
    ASSERT_TRUE(platform::set_file_size(file_, layout.capacity_bytes));
    domain_ = GetParam() ? make_pmem() : make_block_writes(file_, memory_.data());
    CombinerOptions combiner;
    combiner.burst_writes = 100;
    auto region = PersistentRegion::attach(view_, *domain_, growth_, combiner);
    ASSERT_TRUE(region) << region.status().message();
    ASSERT_TRUE(regions_.add(std::move(*region)));
    Thread thread;
    accounts_ = reinterpret_cast<int64_t*>(*regions_.allocate(thread, 0, kAccounts * 64));
    for (unsigned i = 0; i < kAccounts; ++i) store(thread, account(i), int64_t{100});
    ASSERT_TRUE(regions_.ended(thread));
  }
  int64_t& account(unsigned i) { return accounts_[i * 8]; }
  template <class T>
  void store(Thread& thread, T& to, T value) {
    ASSERT_TRUE(regions_.before_store(thread, reinterpret_cast<uintptr_t>(&to), sizeof to));
    to = value;
  }
  void lock(Thread& thread, unsigned i) {
    locks_[i].lock();
    ASSERT_TRUE(regions_.acquired(thread, &locks_[i]));
  }
  void unlock(Thread& thread, unsigned i) {
    ASSERT_TRUE(regions_.releasing(thread, &locks_[i]));
    locks_[i].unlock();
  }
  void transfer(Thread& thread, Rng& rng, uint64_t& kept) {
    const auto from = static_cast<unsigned>(rng.below(kAccounts - 1));
    const auto to = static_cast<unsigned>(from + 1 + rng.below(kAccounts - 1 - from));
    lock(thread, from);
    lock(thread, to);
    store(thread, account(from), account(from) - 1);
    store(thread, account(to), account(to) + 1);
    const bool from_first = rng.below(2) == 0;
    unlock(thread, from_first ? from : to);
    // An object that lives until the thread's next transfer.
    const auto object = regions_.allocate(thread, 0, 48);
    ASSERT_TRUE(object) << object.status().message();
    store(thread, *reinterpret_cast<uint64_t*>(*object), kept);
    if (kept != 0) {
      ASSERT_TRUE(regions_.free(thread, kept));
    }
    kept = *object;
    unlock(thread, from_first ? to : from);
    if (rng.below(8) == 0) {
      ASSERT_TRUE(regions_.sync(thread));
    }
  }

  platform::Mapping memory_;
  platform::File file_;
  RegionView view_;
  std::unique_ptr<Persistence> domain_;
  NoGrowth growth_;
  Regions regions_;
  std::array<std::mutex, kAccounts> locks_;
  int64_t* accounts_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Domains, ThreadsTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "pmem" : "block"; });

TEST_P(ThreadsTest, transfer_at_once_and_everything_becomes_history) {
  const int rounds = GetParam() ? 3000 : 60;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Thread thread;
      Rng rng(t);
      uint64_t kept = 0;
      for (int i = 0; i < rounds; ++i) transfer(thread, rng, kept);
      ASSERT_TRUE(regions_.ended(thread));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(regions_.region(0)->sections().pending(), 0u);
  int64_t sum = 0;
  for (unsigned i = 0; i < kAccounts; ++i) sum += account(i);
  EXPECT_EQ(sum, int64_t{kAccounts} * 100);
  const CheckReport report = check_region(view_, GetParam());
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(report.objects, 1u + kThreads);
  EXPECT_EQ(report.sections_to_keep + report.sections_to_undo, 0u);
}

}  // namespace
}  // namespace spw::durable
