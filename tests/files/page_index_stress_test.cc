// Many threads in one page index: writers note blocks, as files do, while others clean and erase them.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "files/page_index/page_index.h"

namespace spw::files {
namespace {

constexpr uint64_t kLastIndex = ~uint64_t{0};

struct Kit {
  UseSlots uses{std::move(*UseSlots::map_memory())};
  PageNodes pool{uses};
  PageIndex index{pool};
};

// Blocks that lie in the same leaves, leaves that come and go, and some blocks that the tree has to grow for.
constexpr uint64_t kKeys = 2048;
uint64_t index_of(uint64_t key) {
  if (key < kKeys / 2) return key;
  if (key < kKeys * 7 / 8) return (key / 4) << 12 | key % 4;
  return uint64_t{1} << (key / 4 % 64) | key % 4 << 8 | 0x80;
}

// A block is dirty in the cache, or not: what the index is to agree with.
struct World : Kit {
  std::array<std::atomic<bool>, kKeys> is_dirty{};
  std::map<uint64_t, uint64_t> key_of_index;  // without those that meet in one index
  std::atomic<uint64_t> dirtied{0}, cleared{0};
  std::atomic<bool> stop{false};

  World() {
    for (uint64_t key = 0; key < kKeys; ++key) key_of_index.try_emplace(index_of(key), key);
  }
  bool is_used(uint64_t key) const { return key_of_index.at(index_of(key)) == key; }

  void write(uint64_t seed, int steps) {
    Rng rng(seed);
    for (int i = 0; i < steps; ++i) {
      const uint64_t key = rng.below(kKeys);
      if (key + kRun <= kKeys / 2 && key % 4 == 0) {
        write_run(key);
        continue;
      }
      if (!is_used(key)) continue;
      is_dirty[key] = true;
      uint32_t became_dirty;
      index.prefetch(index_of(key));
      SPW_CHECK(index.insert_dirty(index_of(key), &became_dirty));
      dirtied += became_dirty;
    }
  }
  // Neighbours of which each has its key for its index.
  static constexpr uint64_t kRun = 24;
  void write_run(uint64_t first) {
    for (uint64_t key = first; key < first + kRun; ++key) is_dirty[key] = true;
    uint32_t became_dirty;
    SPW_CHECK(index.insert_dirty_run(first, kRun, &became_dirty));
    dirtied += became_dirty;
  }
  // The next dirty run is written. From the end it begins again.
  void write_back(uint64_t* from) {
    const PageIndex::Run run = index.next_dirty_run(*from, kLastIndex, 64);
    *from = run.first + run.count;
    for (uint64_t i = 0; i < run.count; ++i) is_dirty[key_of_index.at(run.first + i)] = false;
    cleared += index.clear_dirty(run.first, run.count,
                                 [&](uint64_t at) { return is_dirty[key_of_index.at(at)].load(); });
    index.erase_clean(run.first, run.count);
  }
};

TEST(PageIndexStress, what_is_dirty_is_found_until_it_has_been_written) {
  constexpr int kRounds = 8;
  constexpr int kSteps = 50'000 / SPW_SLOWED;
  uint64_t cleared = 0;
  for (int round = 0; round < kRounds; ++round) {
    World world;
    std::vector<std::thread> writers;
    for (uint64_t t = 0; t < 4; ++t) writers.emplace_back([&world, t] { world.write(t + 1, kSteps); });
    std::thread cleaner([&] {
      for (uint64_t from = 0; !world.stop;) world.write_back(&from);
    });
    std::thread reclaimer([&] {
      while (!world.stop) {
        world.index.reclaim();
        std::this_thread::yield();
      }
    });
    for (std::thread& writer : writers) writer.join();
    world.stop = true;
    cleaner.join();
    reclaimer.join();
    world.index.check_invariants();
    uint64_t dirty = 0;
    for (const auto& [index, key] : world.key_of_index) {
      const bool is_found = world.index.next_dirty_run(index, index, 1).count == 1;
      // The other way round is right: a writer may note a block late, when it has been written already.
      ASSERT_TRUE(is_found || !world.is_dirty[key]) << index;
      dirty += is_found;
    }
    EXPECT_EQ(world.dirtied, world.cleared + dirty);
    cleared += world.cleared;
    world.index.clear_dirty(0, kLastIndex, [](uint64_t) { return false; });
    world.index.erase_clean(0, kLastIndex);
    world.index.reclaim();
    world.index.check_invariants();
    EXPECT_EQ(world.index.dead_node_count(), 0u);
    EXPECT_EQ(world.pool.retired_count(), 0u);
  }
  EXPECT_GT(cleared, 0u);
}

// A scan takes away the tags of nodes with nothing dirty below them. What others do meanwhile it must not hide.
TEST(PageIndexStress, what_was_inserted_before_a_scan_began_is_found) {
  constexpr uint64_t kThreads = 3;
  constexpr int kSteps = 2'000'000 / SPW_SLOWED;
  Kit kit;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const uint64_t own = t % 2 * 64 + t;  // two share a leaf
      for (int i = 0; i < kSteps; ++i) {
        uint32_t dirtied;
        SPW_CHECK(kit.index.insert_dirty(own, &dirtied) && dirtied == 1);
        SPW_CHECK(kit.index.next_dirty_run(own, own, 1).count == 1);
        SPW_CHECK(kit.index.clear_dirty(own, 1, [](uint64_t) { return false; }) == 1);
        kit.index.erase_clean(own, 1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  kit.index.check_invariants();
  EXPECT_EQ(kit.index.next_dirty_run(0, kLastIndex, 1).count, 0u);
}

TEST(PageIndexStress, a_tree_that_several_threads_grow_loses_nothing) {
  for (uint64_t round = 0; round < 100; ++round) {
    Kit kit;
    std::atomic<uint64_t> ready{0};
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (ready.fetch_add(1); ready < 3;) std::this_thread::yield();
        for (uint64_t shift = 0; shift < 62; ++shift) {
          uint32_t dirtied;
          SPW_CHECK(kit.index.insert_dirty((uint64_t{4} << shift) + t, &dirtied) && dirtied == 1);
        }
      });
    std::thread scanner([&] {
      while (!stop) (void)kit.index.next_dirty_run(0, kLastIndex, kLastIndex);
    });
    for (std::thread& thread : threads) thread.join();
    stop = true;
    scanner.join();
    kit.index.check_invariants();
    for (uint64_t shift = 0; shift < 62; ++shift) {
      const PageIndex::Run run = kit.index.next_dirty_run(uint64_t{4} << shift, kLastIndex, 3);
      ASSERT_EQ(run.first, uint64_t{4} << shift);
      ASSERT_EQ(run.count, 3u);
    }
  }
}

// Some insert the same few blocks, others clean and erase them: each becomes clean as often as it became dirty.
TEST(PageIndexStress, what_many_insert_is_counted_once) {
  constexpr uint64_t kFew = 3, kFarther = 5000;
  constexpr uint64_t kInsertions = 100'000, kInsertionsMax = 100'000'000;  // the cleaner may come late
  Kit kit;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> dirtied_sum{0}, cleared_sum{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      Rng rng(t);
      for (uint64_t i = 0; i < kInsertions || (cleared_sum <= 1000 && i < kInsertionsMax); ++i) {
        uint32_t dirtied;
        SPW_CHECK(kit.index.insert_dirty(rng.below(kFew) * kFarther, &dirtied));
        dirtied_sum += dirtied;
      }
    });
  std::thread cleaner([&] {
    for (Rng rng(9); !stop;) {
      const uint64_t index = rng.below(kFew) * kFarther;
      cleared_sum += kit.index.clear_dirty(index, 1, [](uint64_t) { return false; });
      kit.index.erase_clean(index, 1);
      if (rng.below(100) == 0) kit.index.reclaim();
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  cleaner.join();
  kit.index.check_invariants();
  uint64_t left = 0;
  for (uint64_t i = 0; i < kFew; ++i) left += kit.index.next_dirty_run(i * kFarther, i * kFarther, 1).count;
  EXPECT_EQ(dirtied_sum, cleared_sum + left);
  EXPECT_GT(cleared_sum, 1000u);
}

}  // namespace
}  // namespace spw::files
