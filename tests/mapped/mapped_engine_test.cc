#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "abi/abi.h"
#include "base/check.h"
#include "base/units.h"
#include "front/mapped/engine.h"
#include "heap/heap.h"
#include "region/cache_ranges.h"
#include "store/fault_plan.h"
#include "store/memory_store.h"
#include "telemetry/counters.h"

namespace spw::front {
namespace {

using telemetry::Counter;

constexpr unsigned kShift = 12;
constexpr uint64_t kSpaceBytes = kGiB;
constexpr uint32_t kFrames = 1024;
constexpr uintptr_t kFirst = SPW_MANAGED_BASE + region::kFirstBytes;

void fail(const Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::abort();
}
void fail_io(void*, const Status& status) { fail(status); }

uint64_t counted(Counter counter) { return telemetry::total(telemetry::read_totals(), counter); }

sigjmp_buf g_faulted;
void note_fault(int) { siglongjmp(g_faulted, 1); }

// Whether a store to `address` ends in SIGSEGV.
bool faults(uintptr_t address) {
  struct sigaction action{}, before;
  action.sa_handler = &note_fault;
  sigaction(SIGSEGV, &action, &before);
  volatile bool faulted = false;
  if (sigsetjmp(g_faulted, 1) == 0)
    *reinterpret_cast<volatile char*>(address) = 1;
  else
    faulted = true;
  sigaction(SIGSEGV, &before, nullptr);
  return faulted;
}

// What runtime/ does, with a store in memory. Every test has the whole engine to itself: managed space is one a process.
class MappedEngineTest : public testing::Test {
 protected:
  class Ranges final : public region::CacheRanges {
   public:
    Ranges(cache::SharedCache& cache, MappedEngine& engine) : cache_(cache), engine_(engine) {}
    void grow(BlockId first, uint64_t count, uint64_t live_bytes, bool has_contents) override {
      engine_.grow(first, count, live_bytes, has_contents);
    }
    void grown(BlockId first, uint64_t count) override { engine_.grown(first, count); }
    void discard(BlockId first, uint64_t count) override {
      if (!engine_.withdraw(first, count)) cache_.discard(engine_.client(), first, count);
    }
    Status flush(BlockId first, uint64_t count) override {
      return cache_.flush(engine_.client(), first, count);
    }
    Status sync(BlockId first, uint64_t count) override {
      return cache_.sync(engine_.client(), first, count);
    }
    void prefetch(BlockId first, uint64_t count) override { cache_.prefetch(engine_.client(), first, count); }
    void forget(store::Store& store) override { cache_.close_store(engine_.client(), store); }

   private:
    cache::SharedCache& cache_;
    MappedEngine& engine_;
  };

  virtual bool watches_at_once() const { return true; }
  virtual unsigned block_shift() const { return kShift; }
  virtual uint32_t frames() const { return kFrames; }

  void SetUp() override {
    if (Status status = platform::UserFault::open().status(); !status) GTEST_SKIP() << status.message();
    store_ = std::move(*store::MemoryStore::create(kSpaceBytes, &plan_));
    regions_ = std::move(*region::RegionMap::create(block_shift(), kSpaceBytes, *store_));
    MappedOptions options;
    options.block_shift = block_shift();
    options.space_bytes = kSpaceBytes;
    options.faults.workers = 4;
    options.room.evictors = 0;
    options.watches_at_once = watches_at_once();
    options.fatal = &fail;
    engine_ = std::move(*MappedEngine::create(options));
    cache::Options for_cache;
    for_cache.frame_count = frames();
    for_cache.block_shift = block_shift();
    cache_ = std::move(*cache::SharedCache::create(for_cache, *regions_, &fail_io, nullptr,
                                                   std::move(*engine_->make_frames())));
    SPW_CHECK(engine_->start(*cache_, *regions_).is_ok());
    ranges_ = std::make_unique<Ranges>(*cache_, *engine_);
    regions_->attach(ranges_.get());
  }
  void TearDown() override {
    if (!engine_) return;
    regions_->attach(nullptr);
    // Until no transfer is in flight: it would end in frames that are gone.
    cache_->discard(engine_->client(), BlockId(0), kSpaceBytes >> block_shift());
    cache_->check_invariants();
    engine_.reset();
    cache_.reset();
    HintTable::switch_on(false);  // the process's: after the last of the engine's threads
  }

  std::byte* add(uint64_t bytes) {
    regions_->add_anonymous(kFirst, bytes);
    return reinterpret_cast<std::byte*>(kFirst);
  }
  static int hint(const void* p) {
    return *reinterpret_cast<const volatile int8_t*>((reinterpret_cast<uintptr_t>(p) >> SPW_HINT_SHIFT) +
                                                     SPW_HINT_OFFSET);
  }
  static bool is_resident(std::byte* p) {
    unsigned char there = 0;
    SPW_CHECK(mincore(p, 4096, &there) == 0);
    return (there & 1) != 0;
  }
  // Goes through so much memory that what was there before is evicted.
  static void push_out(std::byte* base, uint64_t from_block) {
    for (uint64_t i = 0; i < 2 * kFrames; ++i) base[(from_block + i) << kShift] = std::byte{1};
  }

  store::FaultPlan plan_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<region::RegionMap> regions_;
  std::unique_ptr<MappedEngine> engine_;
  std::unique_ptr<cache::SharedCache> cache_;
  std::unique_ptr<Ranges> ranges_;
};

TEST_F(MappedEngineTest, a_first_touch_brings_the_neighbours_that_were_never_written) {
  std::byte* base = add(8 * kMiB);
  const uint64_t before = counted(Counter::missing_faults);
  for (uint64_t block = 0; block < 64; ++block) EXPECT_EQ(base[block << kShift], std::byte{0});
  EXPECT_EQ(counted(Counter::missing_faults) - before, 1u);
  EXPECT_EQ(hint(base), 0);
}

TEST_F(MappedEngineTest, what_was_stored_comes_back_after_an_eviction) {
  std::byte* base = add(32 * kMiB);
  for (uint64_t block = 0; block < 8; ++block)
    std::memset(base + (block << kShift), static_cast<int>(block + 1), 4096);
  push_out(base, 64);
  EXPECT_FALSE(is_resident(base));
  EXPECT_LT(hint(base), 0);
  for (uint64_t block = 0; block < 8; ++block) {
    EXPECT_EQ(base[block << kShift], static_cast<std::byte>(block + 1));
    EXPECT_EQ(base[(block << kShift) + 4095], static_cast<std::byte>(block + 1));
  }
}

TEST_F(MappedEngineTest, the_first_store_to_a_clean_block_is_noticed_and_later_ones_are_not) {
  std::byte* base = add(32 * kMiB);
  base[0] = std::byte{1};
  push_out(base, 64);
  EXPECT_EQ(base[0], std::byte{1});
  EXPECT_EQ(hint(base), SPW_HINT_CLEAN);
  const uint64_t before = counted(Counter::protect_faults);
  base[1] = std::byte{2};
  base[2] = std::byte{3};
  EXPECT_EQ(counted(Counter::protect_faults) - before, 1u);
  EXPECT_EQ(hint(base), 0);
  push_out(base, 64);
  EXPECT_EQ(base[2], std::byte{3});
}

TEST_F(MappedEngineTest, a_walk_of_stores_through_clean_blocks_faults_less_and_less_often) {
  std::byte* base = add(32 * kMiB);
  for (uint64_t block = 0; block < 256; ++block) base[block << kShift] = std::byte{1};
  push_out(base, 512);
  for (uint64_t block = 0; block < 256; ++block)
    (void)*static_cast<volatile std::byte*>(base + (block << kShift));
  const uint64_t before = counted(Counter::protect_faults);
  for (uint64_t block = 0; block < 256; ++block) base[block << kShift] = std::byte{2};
  // Parked blocks of the walk before, one in each window that was read ahead, begin it anew.
  EXPECT_LE(counted(Counter::protect_faults) - before, 96u);
  push_out(base, 512);
  for (uint64_t block = 0; block < 256; ++block) ASSERT_EQ(base[block << kShift], std::byte{2});
}

TEST_F(MappedEngineTest, threads_that_walk_side_by_side_are_read_ahead_for) {
  std::byte* base = add(32 * kMiB);
  constexpr uint64_t kEach = 1024;
  for (uint64_t block = 0; block < 2 * kEach; ++block) base[block << kShift] = std::byte{1};
  push_out(base, 2 * kEach + 64);
  const uint64_t before = counted(Counter::fault_misses);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t)
    threads.emplace_back([=] {
      for (uint64_t i = 0; i < kEach; ++i) ASSERT_EQ(base[(t * kEach + i) << kShift], std::byte{1});
    });
  for (auto& thread : threads) thread.join();
  EXPECT_LE(counted(Counter::fault_misses) - before, 2 * kEach / 8);
}

TEST_F(MappedEngineTest, hints_bring_blocks_in_without_a_fault) {
  std::byte* base = add(32 * kMiB);
  base[5] = std::byte{9};
  push_out(base, 64);
  const uint64_t faults = counted(Counter::missing_faults) + counted(Counter::protect_faults);
  const uint64_t misses = counted(Counter::hint_misses);
  engine_->hint(reinterpret_cast<uintptr_t>(base), false);
  EXPECT_EQ(base[5], std::byte{9});
  EXPECT_EQ(hint(base), SPW_HINT_CLEAN);
  engine_->hint(reinterpret_cast<uintptr_t>(base), true);
  base[5] = std::byte{10};
  EXPECT_EQ(hint(base), 0);
  EXPECT_EQ(counted(Counter::missing_faults) + counted(Counter::protect_faults), faults);
  EXPECT_EQ(counted(Counter::hint_misses) - misses, 1u);
}

TEST_F(MappedEngineTest, hints_take_any_address) {
  add(kMiB);
  for (uintptr_t address : {uintptr_t{0}, uintptr_t{1}, SPW_MANAGED_BASE, kFirst + 40 * kMiB,
                            reinterpret_cast<uintptr_t>(this), (uintptr_t{1} << SPW_HINT_ADDRESS_BITS) - 1})
    for (bool is_store : {false, true}) {
      engine_->hint(address, is_store);
      engine_->hint_range(address, 3 * 4096, is_store);
      engine_->hint_stream(address, kMiB);
    }
}

TEST_F(MappedEngineTest, a_freed_range_reads_as_zeros_when_it_is_handed_out_again) {
  std::byte* base = add(kMiB);
  std::memset(base, 7, kMiB);
  regions_->remove(kFirst, kMiB);
  EXPECT_EQ(add(kMiB)[12345], std::byte{0});
}

// As when the thread that served its fault has not let go of it yet.
TEST_F(MappedEngineTest, a_block_that_was_held_while_it_was_freed_takes_stores_when_it_is_handed_out_again) {
  std::byte* base = add(32 * kMiB);
  base[0] = std::byte{1};
  const BlockId block(region::kFirstBytes >> kShift);
  cache::Client& client = engine_->client();
  cache::Pin pin;
  ASSERT_TRUE(cache_->pin(client, block, cache::Access::kRead, &pin));
  regions_->remove(kFirst, 4096);
  cache_->unpin(client, pin.frame);
  ASSERT_TRUE(cache_->flush(client, block, 1));
  regions_->add_anonymous(kFirst, 4096);
  EXPECT_EQ(base[0], std::byte{0});
  base[0] = std::byte{7};
  push_out(base, 64);
  EXPECT_EQ(base[0], std::byte{7});
}

// The same with a file: that block's zeros must not stand before the file's contents.
TEST_F(MappedEngineTest, a_block_that_was_held_while_it_was_freed_hides_no_file_that_is_mapped_later) {
  constexpr uint64_t kMemoryBytes = kSpaceBytes / 4 * 3, kFileBytes = kSpaceBytes / 2;
  auto heap = std::move(*heap::Heap::create(*regions_, kSpaceBytes));
  const uintptr_t memory = heap->mappings().map_anonymous(kMemoryBytes);
  ASSERT_NE(memory, 0u);
  const uintptr_t last = memory + kMemoryBytes - 4096;
  *reinterpret_cast<std::byte*>(last) = std::byte{1};
  cache::Client& client = engine_->client();
  cache::Pin pin;
  ASSERT_TRUE(cache_->pin(client, BlockId((last - SPW_MANAGED_BASE) >> kShift), cache::Access::kRead, &pin));
  heap->mappings().unmap(memory, kMemoryBytes);
  cache_->unpin(client, pin.frame);

  auto file = std::move(*store::MemoryStore::create(kFileBytes, nullptr));
  alignas(4096) static std::byte contents[4096];
  std::memset(contents, 7, sizeof contents);
  for (uint64_t offset = 0; offset < kFileBytes; offset += kMiB) {
    store::Request request;
    request.op = store::Op::kWrite;
    request.offset_bytes = offset + kMiB - 4096;
    request.segment_count = 1;
    request.segments[0] = {contents, sizeof contents};
    ASSERT_TRUE(file->transfer(request));
  }
  auto mapped =
      heap->mappings().map_file(kFileBytes, {regions_->adopt(std::move(file)), 0, region::Kind::kSharedFile});
  if (mapped) {
    for (uint64_t offset = 0; offset < kFileBytes; offset += kMiB)
      ASSERT_EQ(*reinterpret_cast<std::byte*>(*mapped + offset + kMiB - 4096), std::byte{7}) << offset;
    heap->mappings().unmap(*mapped, kFileBytes);
  }
  EXPECT_EQ(mapped.status().error(), ENOMEM) << "there are no new addresses for so large a file";
}

TEST_F(MappedEngineTest, a_range_of_zeros_is_not_written) {
  std::byte* base = add(32 * kMiB);
  const uint64_t before = counted(Counter::zeros_left_out), written = counted(Counter::writebacks);
  for (uint64_t i = 0; i < 4 * kFrames; ++i) (void)*static_cast<volatile std::byte*>(base + (i << kShift));
  EXPECT_GT(counted(Counter::evictions), 0u);
  EXPECT_GT(counted(Counter::zeros_left_out), before);
  EXPECT_EQ(counted(Counter::writebacks), written);
}

TEST_F(MappedEngineTest, misses_switch_hints_on_when_memory_is_short) {
  std::byte* base = add(32 * kMiB);
  for (uint64_t i = 0; i < kFrames / 2; ++i) base[i << kShift] = std::byte{1};
  EXPECT_FALSE(HintTable::is_on()) << "half of the frames are free";
  push_out(base, 0);
  EXPECT_TRUE(HintTable::is_on());
}

// A walk that stops leaves parked blocks behind, for which nobody will ask.
TEST_F(MappedEngineTest, parked_blocks_go_where_nothing_else_can) {
  std::byte* base = add(32 * kMiB);
  push_out(base, 0);
  for (uint64_t walk = 0; walk < 16; ++walk)
    for (uint64_t i = 0; i < 40; ++i)
      (void)*static_cast<volatile std::byte*>(base + ((walk * 100 + i) << kShift));
  cache_->set_frame_limit(16);
  cache_->make_room(engine_->client(), 0, 0);
  for (uint64_t i = 0; i < 2 * kFrames; ++i) EXPECT_EQ(base[i << kShift], std::byte{1});
  cache_->check_invariants();
}

TEST_F(MappedEngineTest, a_range_with_parked_blocks_is_flushed_and_freed) {
  std::byte* base = add(32 * kMiB);
  push_out(base, 0);
  for (uint64_t i = 0; i < 300; ++i) (void)*static_cast<volatile std::byte*>(base + (i << kShift));
  EXPECT_TRUE(cache_->flush(engine_->client(), BlockId(0), 600).is_ok());
  for (uint64_t i = 300; i < 500; ++i) (void)*static_cast<volatile std::byte*>(base + (i << kShift));
  cache_->discard(engine_->client(), BlockId(0), 600);
  cache_->check_invariants();
}

TEST_F(MappedEngineTest, a_lower_limit_gives_memory_back) {
  std::byte* base = add(32 * kMiB);
  push_out(base, 0);
  cache_->set_frame_limit(kFrames / 2);
  cache_->make_room(engine_->client(), 0, 0);
  cache_->make_room(engine_->client(), 0, 0);
  uint64_t resident = 0;
  for (uint64_t i = 0; i < 2 * kFrames; ++i) resident += is_resident(base + (i << kShift));
  EXPECT_LE(resident, kFrames / 2);
}

TEST_F(MappedEngineTest, a_lower_limit_is_kept_on_return_though_every_block_has_to_be_written_first) {
  std::byte* base = add(32 * kMiB);
  constexpr uint64_t kDirty = kFrames / 4 * 3;
  for (uint64_t i = 0; i < kDirty; ++i) base[i << kShift] = static_cast<std::byte>(i | 1);
  const uint64_t written = counted(Counter::writebacks);
  ASSERT_TRUE(plan_.add("write:1+:delay:10000"));
  cache_->set_frame_limit(kFrames / 4);
  ASSERT_TRUE(cache_->evict_to_limit(engine_->client()));
  uint64_t resident = 0;
  for (uint64_t i = 0; i < kDirty; ++i) resident += is_resident(base + (i << kShift));
  EXPECT_LE(resident, kFrames / 4);
  EXPECT_GE(counted(Counter::writebacks) - written, kDirty - kFrames / 4);
  for (uint64_t i = 0; i < kDirty; ++i) ASSERT_EQ(base[i << kShift], static_cast<std::byte>(i | 1));
}

TEST_F(MappedEngineTest, an_address_that_is_nobodys_faults_until_it_is_somebodys) {
  add(kMiB);
  const uintptr_t address = kFirst + 20 * kMiB;
  auto* byte = reinterpret_cast<volatile char*>(address);
  EXPECT_TRUE(faults(address));
  EXPECT_FALSE(engine_->admit_fault(address, true));
  regions_->add_anonymous(address, kMiB);
  EXPECT_FALSE(faults(address));
  *byte = 2;
  EXPECT_EQ(*byte, 2);
}

TEST_F(MappedEngineTest, many_threads_count_right_in_shared_blocks) {
  std::byte* base = add(32 * kMiB);
  constexpr uint64_t kBlocksUsed = 3 * kFrames;
  constexpr int kThreads = 4, kRounds = 3;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([=] {
      for (int round = 0; round < kRounds; ++round)
        for (uint64_t i = 0; i < kBlocksUsed; ++i) {
          auto* word = reinterpret_cast<uint32_t*>(base + ((i * 7 % kBlocksUsed) << kShift)) + t * 16;
          *word += static_cast<uint32_t>(i) + 1;
        }
    });
  for (auto& thread : threads) thread.join();
  for (uint64_t i = 0; i < kBlocksUsed; ++i)
    for (int t = 0; t < kThreads; ++t)
      ASSERT_EQ(reinterpret_cast<uint32_t*>(base + ((i * 7 % kBlocksUsed) << kShift))[t * 16],
                kRounds * (i + 1));
}

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
  const uint64_t adopted = counted(Counter::adoptions);
  for (uint64_t block = 0; block < 512; block += 3) base[block << kShift] = static_cast<std::byte>(block);
  outgrow();
  EXPECT_TRUE(engine_->is_watching());
  EXPECT_EQ(counted(Counter::adoptions) - adopted, 171u);
  cache_->check_invariants();
  for (uint64_t block = 0; block < 512; ++block)
    ASSERT_EQ(base[block << kShift], block % 3 == 0 ? static_cast<std::byte>(block) : std::byte{0});
  regions_->add_anonymous(kFirst + 64 * kMiB, 32 * kMiB);
  push_out(base + 64 * kMiB, 0);
  EXPECT_FALSE(is_resident(base));
  for (uint64_t block = 0; block < 512; block += 3)
    ASSERT_EQ(base[block << kShift], static_cast<std::byte>(block));
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
  ASSERT_EQ(mprotect(base + 4 * 4096, 4096, PROT_READ), 0);
  outgrow();
  EXPECT_TRUE(engine_->is_watching());
  EXPECT_TRUE(faults(kFirst + 4 * 4096));
  EXPECT_EQ(base[4 * 4096], std::byte{1});
  base[3 * 4096] = base[5 * 4096] = std::byte{2};
}

// A coroutine's, say, on memory of malloc.
TEST_F(UnwatchedTest, a_thread_whose_stack_is_managed_may_ask_for_more_than_fits) {
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
}  // namespace spw::front
