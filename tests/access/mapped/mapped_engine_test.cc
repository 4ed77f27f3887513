#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "mapped_engine_fixture.h"

namespace spw::access {
namespace {

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
  EXPECT_GT(hint(base), 0);
  const uint64_t before = counted(Counter::protect_faults);
  base[1] = std::byte{2};
  base[2] = std::byte{3};
  EXPECT_EQ(counted(Counter::protect_faults) - before, 1u);
  EXPECT_EQ(hint(base), 0);
  push_out(base, 64);
  EXPECT_EQ(base[2], std::byte{3});
}

TEST_F(MappedEngineTest, loads_that_stores_follow_bring_their_blocks_writable) {
  constexpr uint64_t kBlocks = 4096;  // of one area
  volatile std::byte* base = add(kBlocks << kShift);
  for (uint64_t block = 0; block < kBlocks; ++block) base[block << kShift] = std::byte{1};
  // In no order, so that no stream is seen.
  std::vector<uint64_t> order(kBlocks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  const auto update = [&](uint64_t first, uint64_t count) {
    const uint64_t before = counted(Counter::protect_faults);
    for (uint64_t i = first; i < first + count; ++i) {
      volatile std::byte& byte = base[order[i] << kShift];
      byte = byte == std::byte{1} ? std::byte{2} : std::byte{3};
    }
    return counted(Counter::protect_faults) - before;
  };
  EXPECT_GT(update(0, 40), 20u);
  update(40, 960);
  EXPECT_LT(update(1000, 2000), 500u);
  for (uint64_t i = 0; i < 3000; ++i) EXPECT_EQ(std::byte{base[order[i] << kShift]}, std::byte{2}) << i;
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

TEST_F(MappedEngineTest, a_walk_of_stores_downwards_does_so_too) {
  std::byte* base = add(32 * kMiB);
  for (uint64_t block = 0; block < 512; ++block) base[block << kShift] = std::byte{1};
  EXPECT_TRUE(regions_->flush(reinterpret_cast<uintptr_t>(base), 32 * kMiB));
  const uint64_t before = counted(Counter::protect_faults);
  for (uint64_t block = 256; block-- > 0;) base[block << kShift] = std::byte{2};
  // The first two, and then after twice as many each time.
  EXPECT_LE(counted(Counter::protect_faults) - before, 16u);
  EXPECT_GE(counted(Counter::protect_faults) - before, 8u);
  push_out(base, 512);
  for (uint64_t block = 0; block < 256; ++block) ASSERT_EQ(base[block << kShift], std::byte{2});
}

TEST_F(MappedEngineTest, stores_are_allowed_ahead_to_what_was_read_ahead_and_its_use_is_noticed_still) {
  std::byte* base = add(32 * kMiB);
  for (uint64_t block = 0; block < 64; ++block) base[block << kShift] = std::byte{1};
  push_out(base, 128);
  engine_->hint_stream(reinterpret_cast<uintptr_t>(base), 64 << kShift);
  const auto store = [&](uint64_t block) {
    std::byte* address = base + (block << kShift);
    engine_->hint(reinterpret_cast<uintptr_t>(address), true);
    *address = std::byte{2};
  };
  for (uint64_t block = 0; block < 8; ++block) store(block);
  // The eighth block was stored to on its own account, and seven behind it take stores.
  const auto faults_now = [] { return counted(Counter::protect_faults) + counted(Counter::missing_faults); };
  const uint64_t faults = faults_now(), used = counted(Counter::readahead_hits);
  EXPECT_LT(hint(base + (12 << kShift)), 0);
  base[12 << kShift] = std::byte{2};
  EXPECT_EQ(faults_now(), faults);
  store(10);
  EXPECT_EQ(counted(Counter::readahead_hits), used + 1);
  push_out(base, 128);
  EXPECT_EQ(base[12 << kShift], std::byte{2});
  EXPECT_EQ(base[10 << kShift], std::byte{2});
}

class TunedMappedEngineTest : public MappedEngineTest {
 protected:
  static constexpr uint64_t kData = 4096, kTogether = 4;
  bool tunes_fills() const override { return true; }
  // Stored to, and evicted; then loaded by fours at random places, until these have been learnt to belong together.
  std::byte* learnt() {
    std::byte* base = add(32 * kMiB);
    for (uint64_t block = 0; block < kData; ++block) word(base, block) = block + 1;
    Rng rng(3);
    for (int i = 0; i < 3000; ++i) {
      const uint64_t first = rng.below(kData / kTogether) * kTogether;
      for (uint64_t block = first; block < first + kTogether; ++block)
        EXPECT_EQ(word(base, block), block + 1);
    }
    return base;
  }
  static uint64_t& word(std::byte* base, uint64_t block) {
    return *reinterpret_cast<uint64_t*>(base + (block << kShift));
  }
  // A four of which nothing is there.
  static uint64_t absent_four(std::byte* base) {
    for (uint64_t first = 0; first < kData; first += kTogether) {
      bool is_there = false;
      for (uint64_t block = first; block < first + kTogether; ++block)
        is_there |= is_resident(base + (block << kShift));
      if (!is_there) return first;
    }
    return kData;
  }
};

TEST_F(TunedMappedEngineTest, a_fault_brings_what_belongs_to_the_block) {
  std::byte* base = learnt();
  uint64_t came = 0, faults = counted(Counter::fault_misses);
  for (int i = 0; i < 64; ++i) {
    const uint64_t first = absent_four(base);
    ASSERT_LT(first, kData);
    for (uint64_t block = first + kTogether; block-- > first;) ASSERT_EQ(word(base, block), block + 1);
    came += kTogether;
  }
  EXPECT_LE(counted(Counter::fault_misses) - faults, came / 2);
}

TEST_F(TunedMappedEngineTest, a_hint_does_so_too_and_later_uses_are_noticed) {
  std::byte* base = learnt();
  for (int i = 0; i < 64; ++i) {
    const uint64_t first = absent_four(base);
    ASSERT_LT(first, kData);
    engine_->hint(reinterpret_cast<uintptr_t>(base + (first << kShift)), false);
    EXPECT_GT(hint(base + (first << kShift)), 0);
    if (is_resident(base + ((first + 1) << kShift))) {
      EXPECT_LT(hint(base + ((first + 1) << kShift)), 0);
    }
    for (uint64_t block = first; block < first + kTogether; ++block) ASSERT_EQ(word(base, block), block + 1);
  }
}

TEST_F(TunedMappedEngineTest, stores_to_what_is_absent_or_came_along_are_not_lost) {
  std::byte* base = learnt();
  std::vector<uint64_t> fours;
  for (int i = 0; i < 64; ++i) {
    const uint64_t first = absent_four(base);
    ASSERT_LT(first, kData);
    // What has been stored to is absent once more, on its way to the store.
    if (std::ranges::find(fours, first) != fours.end()) {
      ASSERT_EQ(word(base, first), first + 100);
      continue;
    }
    fours.push_back(first);
    if (i % 2 == 0) engine_->hint(reinterpret_cast<uintptr_t>(base + (first << kShift)), true);
    word(base, first) = first + 100;
    ASSERT_EQ(word(base, first + 1), first + 2);
    word(base, first + 1) = first + 101;
  }
  push_out(base, kData);
  for (const uint64_t first : fours) {
    ASSERT_EQ(word(base, first), first + 100);
    ASSERT_EQ(word(base, first + 1), first + 101);
    ASSERT_EQ(word(base, first + 2), first + 3);
  }
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

TEST_F(MappedEngineTest, faults_of_many_threads_at_random_places_are_served_together) {
  std::byte* base = add(32 * kMiB);
  constexpr uint64_t kData = 4096, kThreads = 24, kEach = 200;
  const auto word = [base](uint64_t block) -> uint64_t& {
    return *reinterpret_cast<uint64_t*>(base + (block << kShift));
  };
  for (uint64_t block = 0; block < kData; ++block) word(block) = block + 1;
  push_out(base, kData);
  SPW_CHECK(plan_.add("read:100+:delay:200").is_ok());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([=] {
      Rng rng(t);
      for (uint64_t i = 0; i < kEach; ++i) {
        const uint64_t block = rng.below(kData);
        if (block % kThreads == t) word(block) = block + 1;  // its own to store to
        ASSERT_EQ(word(block), block + 1);
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST_F(MappedEngineTest, threads_that_fault_on_the_same_block_are_served_by_one_read) {
  std::byte* base = add(32 * kMiB);
  base[0] = std::byte{7};
  push_out(base, 64);
  SPW_CHECK(plan_.add("read:1+:delay:20000").is_ok());
  const uint64_t before = plan_.requests(store::Op::kRead);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) threads.emplace_back([=] { EXPECT_EQ(base[0], std::byte{7}); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(plan_.requests(store::Op::kRead) - before, 1u);
}

TEST_F(MappedEngineTest, the_end_waits_for_reads_that_are_in_flight) {
  std::byte* base = add(32 * kMiB);
  for (uint64_t block = 0; block < 8; ++block) base[8 * block << kShift] = std::byte{1};
  push_out(base, 128);
  SPW_CHECK(plan_.add("read:1+:delay:50000").is_ok());
  const uint64_t before = counted(Counter::missing_faults);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t)
    threads.emplace_back([=] { EXPECT_EQ(base[8 * t << kShift], std::byte{1}); });
  while (counted(Counter::missing_faults) - before < 8) std::this_thread::yield();
  engine_->stop();
  for (auto& thread : threads) thread.join();
}

TEST_F(MappedEngineTest, hints_bring_blocks_in_without_a_fault) {
  std::byte* base = add(32 * kMiB);
  base[5] = std::byte{9};
  push_out(base, 64);
  const uint64_t faults = counted(Counter::missing_faults) + counted(Counter::protect_faults);
  const uint64_t misses = counted(Counter::hint_misses);
  engine_->hint(reinterpret_cast<uintptr_t>(base), false);
  EXPECT_EQ(base[5], std::byte{9});
  EXPECT_GT(hint(base), 0);
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
  EXPECT_FALSE(access::VersionSwitch::is_set()) << "half of the frames are free";
  push_out(base, 0);
  EXPECT_TRUE(access::VersionSwitch::is_set());
}

TEST_F(MappedEngineTest, hints_are_switched_off_when_nobody_asks_for_a_block) {
  push_out(add(32 * kMiB), 0);
  EXPECT_TRUE(access::VersionSwitch::is_set());
  while (access::VersionSwitch::is_set()) std::this_thread::yield();  // by the engine's keeper of room
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
  engine_->stop();
  cache_->check_invariants();
}

TEST_F(MappedEngineTest, a_range_with_parked_blocks_is_flushed_and_freed) {
  std::byte* base = add(32 * kMiB);
  push_out(base, 0);
  for (uint64_t i = 0; i < 300; ++i) (void)*static_cast<volatile std::byte*>(base + (i << kShift));
  EXPECT_TRUE(cache_->flush(engine_->client(), BlockId(0), 600).is_ok());
  for (uint64_t i = 300; i < 500; ++i) (void)*static_cast<volatile std::byte*>(base + (i << kShift));
  cache_->discard(engine_->client(), BlockId(0), 600);
  engine_->stop();
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
  EXPECT_FALSE(engine_->admit_fault(address, true, false));
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

}  // namespace
}  // namespace spw::access
