#include "heap/heap.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <thread>

#include "../region/fakes.h"
#include "base/rng.h"

namespace spw::heap {
namespace {

using testing::FakeStore;
using testing::RecordedRanges;

constexpr uint64_t kSpace = 64 * kGiB;

struct HeapOnFakes {
  explicit HeapOnFakes(unsigned block_shift = 12, uint64_t space = kSpace) : spill(space) {
    auto made_map = region::RegionMap::create(block_shift, space, spill);
    EXPECT_TRUE(made_map.is_ok());
    map = std::move(*made_map);
    map->attach(&ranges);
    auto made = Heap::create(*map, space);
    EXPECT_TRUE(made.is_ok());
    heap = std::move(*made);
  }
  FakeStore spill;
  RecordedRanges ranges;
  std::unique_ptr<region::RegionMap> map;
  std::unique_ptr<Heap> heap;
};

uintptr_t number(void* p) { return reinterpret_cast<uintptr_t>(p); }

TEST(SizeClasses, hold_what_they_promise_with_little_waste) {
  for (uint64_t bytes = 1; bytes <= 70000; ++bytes) {
    uint64_t held = class_bytes(class_of(bytes));
    ASSERT_GE(held, bytes);
    ASSERT_LT(held - bytes, std::max<uint64_t>(16, bytes / 4 + 1)) << bytes;
    if (class_of(bytes) > 0) {
      ASSERT_LT(class_bytes(class_of(bytes) - 1), bytes);
    }
  }
  for (uint64_t alignment = 16; alignment <= 16384; alignment *= 2)
    for (uint64_t bytes = 1; bytes < 16384; bytes += 97)
      ASSERT_EQ(class_bytes(class_of_aligned(bytes, alignment)) % alignment, 0u);
}

TEST(Heap, the_first_addresses_are_never_handed_out) {
  HeapOnFakes it;
  for (uint64_t bytes : {1u, 100u, 5000u, 100000u}) {
    void* p = it.heap->allocate(bytes).address;
    EXPECT_GE(number(p), SPW_MANAGED_BASE + region::kFirstBytes);
    it.heap->free(p);
  }
}

// Every operation against a model: no overlap, alignment, usable size, and zeroed only where nothing was written since
// the range was discarded.
void random_operations(unsigned block_shift, uint64_t seed) {
  HeapOnFakes it(block_shift);
  struct Object {
    uint64_t bytes;
  };
  std::map<uintptr_t, Object> live;
  auto check_free_around = [&](uintptr_t p, uint64_t bytes) {
    auto next = live.lower_bound(p);
    if (next != live.end()) {
      ASSERT_LE(p + bytes, next->first);
    }
    if (next != live.begin()) {
      auto before = std::prev(next);
      ASSERT_LE(before->first + before->second.bytes, p);
    }
  };
  Rng rng(seed);
  for (int round = 0; round < 30000; ++round) {
    uint64_t choice = rng.below(10);
    auto pick = live.lower_bound(SPW_MANAGED_BASE + rng.below(256 * kMiB));
    if (pick == live.end()) pick = live.begin();
    if (choice < 6) {
      uint64_t bytes = rng.below(uint64_t{1} << rng.below(21));
      uint64_t alignment = rng.below(4) == 0 ? uint64_t{16} << rng.below(12) : 16;
      auto got = it.heap->allocate(bytes, alignment);
      ASSERT_NE(got.address, nullptr);
      uintptr_t p = number(got.address);
      ASSERT_EQ(p % alignment, 0u);
      uint64_t usable = it.heap->usable_bytes(got.address);
      ASSERT_GE(usable, bytes);
      check_free_around(p, usable);
      ASSERT_EQ(it.map->kind_at(p), region::Kind::kAnonymous);
      ASSERT_EQ(it.map->kind_at(p + usable - 1), region::Kind::kAnonymous);
      live[p] = {usable};
    } else if (choice < 9 && pick != live.end()) {
      it.heap->free(reinterpret_cast<void*>(pick->first));
      live.erase(pick);
    } else if (pick != live.end()) {
      uintptr_t p = pick->first;
      uint64_t bytes = 1 + rng.below(uint64_t{1} << rng.below(21));
      live.erase(pick);
      if (it.heap->resize_in_place(reinterpret_cast<void*>(p), bytes)) {
        ASSERT_GE(it.heap->usable_bytes(reinterpret_cast<void*>(p)), bytes);
      }
      uint64_t usable = it.heap->usable_bytes(reinterpret_cast<void*>(p));
      check_free_around(p, usable);
      live[p] = {usable};
    }
    if (round % 5000 == 0) it.heap->check_invariants();
  }
  for (auto& [p, object] : live) it.heap->free(reinterpret_cast<void*>(p));
  it.heap->end_thread();
  it.heap->check_invariants();
  // What is left is at most one empty span a class.
  EXPECT_LE(it.map->live_bytes(), kSizeClassesMax * 4 * std::max<uint64_t>(16 * kKiB, 1u << block_shift));
}

TEST(Heap, random_operations_agree_with_a_model) { random_operations(12, 1); }
TEST(Heap, random_operations_agree_with_a_model_at_64_kib_blocks) { random_operations(16, 2); }
TEST(Heap, random_operations_agree_with_a_model_at_2_mib_blocks) { random_operations(21, 3); }

TEST(Heap, a_freed_large_object_is_discarded_and_its_addresses_are_used_again) {
  HeapOnFakes it;
  void* p = it.heap->allocate(kMiB).address;
  it.map->written_back(BlockId((number(p) - SPW_MANAGED_BASE) >> 12), &it.spill);
  it.heap->free(p);
  ASSERT_EQ(it.ranges.discards.size(), 1u);
  EXPECT_EQ(it.ranges.discards[0].count, 256u);
  auto again = it.heap->allocate(kMiB);
  EXPECT_EQ(again.address, p);
  EXPECT_TRUE(again.zeroed);
  EXPECT_FALSE(it.map->locate_for_fill(BlockId((number(p) - SPW_MANAGED_BASE) >> 12)).has_contents);
}

TEST(Heap, a_reused_small_slot_is_not_called_zeroed_and_a_fresh_one_is) {
  HeapOnFakes it;
  auto first = it.heap->allocate(64);
  EXPECT_TRUE(first.zeroed);
  it.heap->free(first.address);
  auto second = it.heap->allocate(64);
  EXPECT_EQ(second.address, first.address);
  EXPECT_FALSE(second.zeroed);
}

TEST(Heap, objects_allocated_one_after_the_other_are_neighbours) {
  HeapOnFakes it;
  uintptr_t last = number(it.heap->allocate(48).address);
  for (int i = 0; i < 1000; ++i) {
    uintptr_t p = number(it.heap->allocate(48).address);
    if (p % (64 * kKiB) != 0) {
      EXPECT_EQ(p, last + 48);
    }
    last = p;
  }
}

TEST(Heap, aligns_up_to_one_gib) {
  HeapOnFakes it;
  for (uint64_t alignment = 16; alignment <= kGiB; alignment *= 2)
    for (uint64_t bytes : {1u, 5000u, 300000u})
      EXPECT_EQ(number(it.heap->allocate(bytes, alignment).address) % alignment, 0u);
  EXPECT_EQ(it.heap->allocate(1, 2 * kGiB).address, nullptr);
}

TEST(Heap, says_when_there_is_no_room_and_recovers) {
  HeapOnFakes it(12, 16 * kMiB);
  std::vector<void*> objects;
  while (void* p = it.heap->allocate(kMiB).address) objects.push_back(p);
  // 16 less the first 2, which are nobody's; each has a block left
  // out behind it, and what is left has room for small ones.
  EXPECT_EQ(objects.size(), 13u);
  while (void* p = it.heap->allocate(64 * kKiB).address) objects.push_back(p);
  EXPECT_EQ(it.heap->allocate(100 * kTiB).address, nullptr);
  EXPECT_EQ(it.heap->allocate(UINT64_MAX).address, nullptr);
  EXPECT_EQ(it.heap->allocate(10).address, nullptr);
  it.heap->free(objects.front());
  EXPECT_NE(it.heap->allocate(10).address, nullptr);
  it.heap->check_invariants();
}

TEST(Heap, grows_in_place_into_a_free_neighbour_only) {
  HeapOnFakes it;
  void* a = it.heap->allocate(100 * kKiB).address;
  void* b = it.heap->allocate(100 * kKiB).address;
  ASSERT_EQ(number(b), number(a) + 100 * kKiB + 4096);  // a block is left out between them
  EXPECT_FALSE(it.heap->resize_in_place(a, 200 * kKiB));
  it.heap->free(b);
  EXPECT_TRUE(it.heap->resize_in_place(a, 200 * kKiB));
  EXPECT_EQ(it.heap->usable_bytes(a), 200 * kKiB);
  EXPECT_TRUE(it.heap->resize_in_place(a, 50 * kKiB));
  EXPECT_EQ(it.heap->usable_bytes(a), 52 * kKiB);
  EXPECT_EQ(it.map->kind_at(number(a) + 100 * kKiB), region::Kind::kNone);
  it.heap->check_invariants();
}

TEST(Heap, large_objects_of_a_power_of_two_do_not_lie_one_apart) {
  HeapOnFakes it;
  const uintptr_t a = number(it.heap->allocate(kMiB).address), b = number(it.heap->allocate(kMiB).address);
  EXPECT_EQ(b, a + kMiB + 4096);
  EXPECT_EQ(it.map->kind_at(a + kMiB), region::Kind::kNone);
}

TEST(Heap, metadata_stays_small_beside_the_data) {
  HeapOnFakes it;
  for (int i = 0; i < 1000; ++i) ASSERT_NE(it.heap->allocate(10 * kMiB).address, nullptr);
  for (int i = 0; i < 100000; ++i) ASSERT_NE(it.heap->allocate(256).address, nullptr);
  // A page of the page map for each 8 MiB of large objects, two bits a slot for small ones.
  EXPECT_LT(it.heap->metadata_bytes(), 5 * kMiB);
}

TEST(Heap, threads_free_what_others_allocated) {
  HeapOnFakes it;
  constexpr int kThreads = 8, kRounds = 6000;
  std::mutex mutex;
  std::deque<std::pair<void*, uint64_t>> shared;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Rng rng(t + 1);
      for (int round = 0; round < kRounds; ++round) {
        uint64_t bytes = 1 + rng.below(uint64_t{1} << rng.below(17));
        void* p = it.heap->allocate(bytes).address;
        ASSERT_NE(p, nullptr);
        std::pair<void*, uint64_t> other{nullptr, 0};
        {
          std::lock_guard lock(mutex);
          shared.emplace_back(p, bytes);
          if (shared.size() > 200 || rng.below(3) == 0) {
            size_t at = rng.below(shared.size());
            other = shared[at];
            shared[at] = shared.back();
            shared.pop_back();
          }
        }
        if (other.first != nullptr) {
          ASSERT_GE(it.heap->usable_bytes(other.first), other.second);
          it.heap->free(other.first);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  it.heap->check_invariants();
  std::map<uintptr_t, uint64_t> left;
  for (auto [p, bytes] : shared) left[number(p)] = it.heap->usable_bytes(p);
  ASSERT_EQ(left.size(), shared.size());
  uintptr_t end = 0;
  for (auto [p, bytes] : left) {
    ASSERT_GE(p, end);
    end = p + bytes;
  }
  for (auto [p, bytes] : shared) it.heap->free(p);
  it.heap->check_invariants();
}

TEST(Heap, two_thousand_short_threads_leak_no_slots) {
  HeapOnFakes it;
  for (int batch = 0; batch < 50; ++batch) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 40; ++t)
      threads.emplace_back([&, t] {
        void* mine[8];
        for (int i = 0; i < 8; ++i) mine[i] = it.heap->allocate(100 + 400 * (t % 4)).address;
        for (void* p : mine) it.heap->free(p);
      });
    for (auto& thread : threads) thread.join();
  }
  it.heap->check_invariants();
  // Four classes; a class holds one empty span, and as many more as ran at one time.
  EXPECT_LE(it.map->live_bytes(), 8 * 64 * kKiB);
}

TEST(HeapDeathTest, freeing_twice_or_what_was_never_allocated_stops_the_program) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  HeapOnFakes it;
  void* large = it.heap->allocate(kMiB).address;
  it.heap->free(large);
  EXPECT_DEATH(it.heap->free(large), "large.bytes != 0");
  void* small = it.heap->allocate(100).address;
  EXPECT_DEATH(it.heap->free(static_cast<char*>(small) + 1), "== address");
  it.heap->free(small);
  EXPECT_DEATH(it.heap->free(small), "run.free");
}

}  // namespace
}  // namespace spw::heap
