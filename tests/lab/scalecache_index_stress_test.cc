// Many threads in one page index, against what each of them knows to be true.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "lab/page_index/scalecache_index.h"

namespace spw::lab {
namespace {

using files::PageNode, files::PageNodes, files::UseSlots;
using Insertion = ScaleCacheIndex::Insertion;

constexpr uint64_t kLastIndex = ~uint64_t{0};
constexpr uint64_t kOwners = 4;
// Keys that lie in the same leaves, some far away in a tree that has
// to grow for them, and some leaves that come and go.
constexpr uint64_t kKeys = 4096;
constexpr uint64_t kSharedKeys = 32;

uint64_t index_of(uint64_t key) {
  if (key < kKeys / 2) return key;
  if (key < kKeys * 3 / 4) return (key / kOwners) << 12 | key % kOwners;  // a leaf each four keys
  if (key < kKeys * 7 / 8) return kLastIndex - key * 40;
  return uint64_t{1} << (key / kOwners % 64) | key % kOwners << 8 | 0x80;
}

// Each key has one owner; only the scanner touches tags of others.
struct World {
  UseSlots uses{std::move(*UseSlots::map_memory())};
  PageNodes pool{uses};
  ScaleCacheIndex index{pool};
  std::array<std::atomic<uint8_t>, kKeys> owner_says_dirty{};
  std::array<std::atomic<uint64_t>, kSharedKeys> holders{};
  std::map<uint64_t, uint64_t> key_of_index;  // without those that meet in one index
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wins{0};

  World() {
    for (uint64_t key = 0; key < kKeys; ++key) key_of_index.try_emplace(index_of(key), key);
  }
  bool is_used(uint64_t key) const { return key_of_index.at(index_of(key)) == key; }
};

// The key stands in the entry, so that a reader can tell a wrong one.
uint64_t entry_of(uint64_t key, uint64_t version) { return (key + 1) << 32 | (version & 0xFFFFFFFF); }
uint64_t key_in(uint64_t entry) { return (entry >> 32) - 1; }
// Of shared keys: a leaf of its own for every two.
uint64_t shared_index(uint64_t shared) { return uint64_t{3} << 40 | shared / 2 << 6 | shared % 2; }

class Owner {
 public:
  Owner(World& world, uint64_t number) : world_(world), number_(number), rng_(number + 1) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      const uint64_t key = rng_.below(kKeys / kOwners) * kOwners + number_;
      if (world_.is_used(key)) own_step(key);
      if (rng_.below(4) == 0) contend(rng_.below(kSharedKeys));
    }
  }
  void check() const {
    for (uint64_t key = number_; key < kKeys; key += kOwners) {
      if (!world_.is_used(key)) continue;
      auto at = entries_.find(key);
      SPW_CHECK(world_.index.find(index_of(key)) == (at == entries_.end() ? 0 : at->second));
      if (at != entries_.end() && world_.owner_says_dirty[key] != 0)
        SPW_CHECK(world_.index.is_dirty(index_of(key)));
    }
  }
  uint64_t count() const { return entries_.size(); }

 private:
  void own_step(uint64_t key) {
    const uint64_t index = index_of(key);
    auto at = entries_.find(key);
    const bool there = at != entries_.end();
    SPW_CHECK(world_.index.find(index) == (there ? at->second : 0));
    switch (rng_.below(7)) {
      case 0:
      case 1: {
        const uint64_t entry = entry_of(key, ++version_);
        const Insertion insertion = world_.index.insert(index, entry);
        SPW_CHECK(insertion == (there ? Insertion::kOccupied : Insertion::kInserted));
        if (there) break;
        SPW_CHECK(!world_.index.is_dirty(index));
        entries_[key] = entry;
        break;
      }
      case 2:
      case 3:
        SPW_CHECK(world_.index.erase(index) == (there ? at->second : 0));
        world_.owner_says_dirty[key] = 0;
        if (there) entries_.erase(at);
        break;
      case 4:
        if (there) world_.owner_says_dirty[key] = 1;
        SPW_CHECK(world_.index.set_dirty(index) == there);
        break;
      case 5: {
        const uint64_t entry = entry_of(key, ++version_);
        uint32_t dirtied;
        world_.owner_says_dirty[key] = 1;
        SPW_CHECK(world_.index.insert_dirty(index, entry, &dirtied));
        SPW_CHECK(there || dirtied > 0);
        entries_.try_emplace(key, entry);
        break;
      }
      default:
        if (!there) break;
        SPW_CHECK(world_.index.replace(index, at->second, entry_of(key, ++version_)));
        at->second = entry_of(key, version_);
    }
  }
  // An entry of a shared key is a lock: who inserts has it.
  void contend(uint64_t shared) {
    const uint64_t mine = entry_of(kKeys + shared, number_ + 1);
    switch (world_.index.insert(shared_index(shared), mine)) {
      case Insertion::kInserted:
        SPW_CHECK(world_.holders[shared].exchange(mine) == 0);
        SPW_CHECK(world_.index.find(shared_index(shared)) == mine);
        SPW_CHECK(world_.holders[shared].exchange(0) == mine);
        SPW_CHECK(world_.index.erase_if(shared_index(shared), mine));
        world_.wins.fetch_add(1, std::memory_order_relaxed);
        break;
      case Insertion::kOccupied:
        SPW_CHECK(!world_.index.erase_if(shared_index(shared), mine));
        break;
      case Insertion::kNoMemory:
        SPW_CHECK(false);
    }
  }

  World& world_;
  uint64_t number_;
  Rng rng_;
  uint64_t version_ = 0;
  std::map<uint64_t, uint64_t> entries_;
};

void read(World& world) {
  Rng rng(77);
  while (!world.stop) {
    for (int i = 0; i < 1000; ++i) {
      const uint64_t key = rng.below(kKeys);
      if (!world.is_used(key)) continue;
      const uint64_t entry = world.index.find(index_of(key));
      SPW_CHECK(entry == 0 || key_in(entry) == key);
    }
    bool is_first = true;
    uint64_t before = 0;
    world.index.for_each_present(0, kLastIndex, [&](uint64_t index, uint64_t entry) {
      SPW_CHECK(is_first || index > before);
      const uint64_t key = key_in(entry);
      SPW_CHECK(index == (key < kKeys ? index_of(key) : shared_index(key - kKeys)));
      is_first = false;
      before = index;
    });
  }
}

// A writeback of each dirty run: what its owner has made dirty again meanwhile stays dirty.
void write_back(World& world) {
  uint64_t from = 0;
  while (!world.stop) {
    const ScaleCacheIndex::Run run = world.index.next_dirty_run(from, kLastIndex, 64);
    from = run.first + run.count;
    for (uint64_t i = 0; i < run.count; ++i) world.owner_says_dirty[world.key_of_index.at(run.first + i)] = 0;
    world.index.clear_dirty(run.first, run.count, [&](uint64_t index) {
      return world.owner_says_dirty[world.key_of_index.at(index)] != 0;
    });
    if (from == 0) world.index.reclaim();
  }
}

void check_at_rest(World& world, const std::vector<std::unique_ptr<Owner>>& owners) {
  world.index.check_invariants();
  uint64_t count = 0;
  for (const auto& owner : owners) {
    owner->check();
    count += owner->count();
  }
  world.index.for_each_present(0, kLastIndex, [&](uint64_t, uint64_t) { --count; });
  EXPECT_EQ(count, 0u);
  // The scan finds just those that are dirty.
  std::map<uint64_t, bool> scanned;
  uint64_t from = 0;
  do {
    const ScaleCacheIndex::Run run = world.index.next_dirty_run(from, kLastIndex, kLastIndex);
    for (uint64_t i = 0; i < run.count; ++i) scanned[run.first + i] = true;
    from = run.first + run.count;
  } while (from != 0);
  for (const auto& [index, key] : world.key_of_index)
    EXPECT_EQ(scanned.contains(index), world.index.is_dirty(index)) << index;
}

TEST(ScaleCacheIndexStress, every_thread_finds_what_it_left_and_no_reader_a_wrong_entry) {
  constexpr int kRounds = 12;
  constexpr int kSteps = 25'000 / SPW_SLOWED;
  uint64_t wins = 0;
  for (int round = 0; round < kRounds; ++round) {
    World world;
    std::vector<std::unique_ptr<Owner>> owners;
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kOwners; ++t) owners.push_back(std::make_unique<Owner>(world, t));
    for (const auto& owner : owners) threads.emplace_back([&owner] { owner->run(kSteps); });
    std::thread reader(read, std::ref(world));
    std::thread writer(write_back, std::ref(world));
    std::thread reclaimer([&] {
      while (!world.stop) {
        world.index.reclaim();
        std::this_thread::yield();
      }
    });
    for (std::thread& thread : threads) thread.join();
    world.stop = true;
    for (std::thread* thread : {&reader, &writer, &reclaimer}) thread->join();
    check_at_rest(world, owners);
    world.index.reclaim();
    check_at_rest(world, owners);
    EXPECT_EQ(world.index.dead_node_count(), 0u);
    EXPECT_EQ(world.pool.retired_count(), 0u);
    wins += world.wins;
  }
  EXPECT_GT(wins, 0u);
}

TEST(ScaleCacheIndexStress, a_tree_that_several_threads_grow_loses_nothing) {
  for (uint64_t round = 0; round < 100; ++round) {
    World world;
    std::atomic<uint64_t> ready{0};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (ready.fetch_add(1); ready < 3;) std::this_thread::yield();
        for (uint64_t shift = 0; shift < 62; ++shift) {
          const uint64_t index = (uint64_t{4} << shift) + t;
          uint32_t dirtied;
          SPW_CHECK(world.index.insert(index, shift + 1) == Insertion::kInserted);
          SPW_CHECK(world.index.set_dirty(index, &dirtied) && dirtied == 1);
        }
      });
    for (std::thread& thread : threads) thread.join();
    world.index.check_invariants();
    for (uint64_t shift = 0; shift < 62; ++shift) {
      const ScaleCacheIndex::Run run = world.index.next_dirty_run(uint64_t{4} << shift, kLastIndex, 3);
      ASSERT_EQ(run.first, uint64_t{4} << shift);
      ASSERT_EQ(run.count, 3u);
    }
  }
}

}  // namespace
}  // namespace spw::lab
