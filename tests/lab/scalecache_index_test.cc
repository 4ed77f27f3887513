#include "lab/page_index/scalecache_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace spw::lab {
namespace {

using files::PageNode, files::PageNodes, files::UseSlots;
using Insertion = ScaleCacheIndex::Insertion;

constexpr uint64_t kLastIndex = ~uint64_t{0};

struct Kit {
  UseSlots uses{std::move(*UseSlots::map_memory())};
  PageNodes pool{uses};
};

class ScaleCacheIndexTest : public testing::Test, protected Kit {
 protected:
  ~ScaleCacheIndexTest() override { index.check_invariants(); }

  void fill(const std::vector<uint64_t>& keys) {
    for (uint64_t key : keys) ASSERT_EQ(index.insert(key, entry_for(key)), Insertion::kInserted) << key;
  }
  std::vector<uint64_t> present(uint64_t first = 0, uint64_t last = kLastIndex) {
    std::vector<uint64_t> keys;
    index.for_each_present(first, last, [&](uint64_t key, uint64_t entry) {
      EXPECT_EQ(entry, entry_for(key));
      keys.push_back(key);
    });
    return keys;
  }
  static uint64_t entry_for(uint64_t key) { return (key * 0x9E3779B97F4A7C15u >> 2) + 1; }

  ScaleCacheIndex index{pool};
};

using Keys = std::vector<uint64_t>;

// Every level's first and last slot, and both ends.
Keys edge_keys() {
  Keys keys;
  for (unsigned shift = 0; shift < 64; shift += 6)
    for (uint64_t near : {uint64_t{1} << shift, (uint64_t{1} << shift) - 1, (uint64_t{1} << shift) + 1})
      keys.push_back(near);
  for (uint64_t back = 0; back < 3; ++back) keys.push_back(kLastIndex - back);
  keys.push_back(uint64_t{1} << 63);
  keys.push_back((uint64_t{1} << 63) - 1);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

TEST_F(ScaleCacheIndexTest, an_empty_index_has_nothing) {
  EXPECT_EQ(index.find(0), 0u);
  EXPECT_EQ(index.find(kLastIndex), 0u);
  EXPECT_EQ(index.erase(5), 0u);
  EXPECT_FALSE(index.replace(5, 1, 2));
  EXPECT_FALSE(index.set_dirty(5));
  EXPECT_FALSE(index.is_dirty(5));
  EXPECT_EQ(index.next_present(0).entry, 0u);
  EXPECT_EQ(index.next_dirty_run(0, kLastIndex, 10).count, 0u);
  EXPECT_EQ(index.node_count(), 0u);
  index.reclaim();
}

TEST_F(ScaleCacheIndexTest, finds_what_was_inserted_densely) {
  constexpr uint64_t kCount = 10'000;
  for (uint64_t key = 0; key < kCount; ++key)
    ASSERT_EQ(index.insert(key, entry_for(key)), Insertion::kInserted);
  for (uint64_t key = 0; key < kCount; ++key) ASSERT_EQ(index.find(key), entry_for(key));
  EXPECT_EQ(index.find(kCount), 0u);
  // Leaves, and one in 64 nodes above.
  EXPECT_LE(index.node_count(), kCount / 64 + kCount / 4096 + 4);
}

TEST_F(ScaleCacheIndexTest, finds_what_was_inserted_at_the_edges_of_64_bits) {
  Keys keys = edge_keys();
  fill(keys);
  for (uint64_t key : keys) EXPECT_EQ(index.find(key), entry_for(key)) << key;
  EXPECT_EQ(present(), keys);
  EXPECT_EQ(index.find(kLastIndex - 3), 0u);
  index.check_invariants();
  for (uint64_t key : keys) EXPECT_EQ(index.erase(key), entry_for(key)) << key;
  EXPECT_EQ(index.next_present(0).entry, 0u);
}

TEST_F(ScaleCacheIndexTest, the_first_insertion_wins) {
  EXPECT_EQ(index.insert(7, 1), Insertion::kInserted);
  EXPECT_EQ(index.insert(7, 2), Insertion::kOccupied);
  EXPECT_EQ(index.find(7), 1u);
}

TEST_F(ScaleCacheIndexTest, replace_and_conditional_erase_want_the_entry_expected) {
  fill({7});
  EXPECT_FALSE(index.replace(7, entry_for(7) + 1, 5));
  EXPECT_FALSE(index.erase_if(7, entry_for(7) + 1));
  EXPECT_TRUE(index.replace(7, entry_for(7), 5));
  EXPECT_EQ(index.find(7), 5u);
  EXPECT_TRUE(index.erase_if(7, 5));
  EXPECT_EQ(index.find(7), 0u);
}

TEST_F(ScaleCacheIndexTest, scans_go_in_order_and_within_their_range) {
  Keys keys = {0, 1, 63, 64, 65, 4095, 4096, 1 << 20, uint64_t{1} << 40, kLastIndex};
  fill(keys);
  EXPECT_EQ(present(), keys);
  EXPECT_EQ(present(1, 4095), (Keys{1, 63, 64, 65, 4095}));
  EXPECT_EQ(present(66, 4094), Keys{});
  EXPECT_EQ(present(kLastIndex, kLastIndex), Keys{kLastIndex});
  EXPECT_EQ(index.next_present(66).index, 4095u);
  EXPECT_EQ(index.next_present((uint64_t{1} << 40) + 1).index, kLastIndex);
}

TEST_F(ScaleCacheIndexTest, a_scan_beyond_a_small_tree_finds_nothing) {
  fill({3});
  EXPECT_EQ(index.next_present(4).entry, 0u);
  EXPECT_EQ(index.next_present(uint64_t{1} << 50).entry, 0u);
  EXPECT_EQ(index.next_dirty_run(1000, 2000, 5).count, 0u);
}

TEST_F(ScaleCacheIndexTest, tags_go_with_their_entry_and_stay_with_a_replaced_one) {
  fill({5, 6});
  ASSERT_TRUE(index.set_dirty(5));
  ASSERT_TRUE(index.set_dirty(6));
  ASSERT_TRUE(index.replace(6, entry_for(6), 9));
  EXPECT_TRUE(index.is_dirty(6));
  EXPECT_EQ(index.erase(5), entry_for(5));
  EXPECT_FALSE(index.is_dirty(5));
  fill({5});
  EXPECT_FALSE(index.is_dirty(5));
  EXPECT_EQ(index.next_dirty_run(0, kLastIndex, 9).first, 6u);
}

TEST_F(ScaleCacheIndexTest, what_is_inserted_dirty_is_found_and_revives_a_dead_leaf) {
  fill({1, 1'000'000});
  ASSERT_NE(index.erase(1'000'000), 0u);
  ASSERT_GT(index.dead_node_count(), 0u);
  uint32_t dirtied;
  ASSERT_TRUE(index.insert_dirty(1'000'000, 7, &dirtied));
  EXPECT_EQ(dirtied, 1u);
  EXPECT_EQ(index.dead_node_count(), 0u);
  EXPECT_EQ(index.next_dirty_run(0, kLastIndex, 9).first, 1'000'000u);
  EXPECT_EQ(index.find(1'000'000), 7u);
}

TEST_F(ScaleCacheIndexTest, reclaim_gives_dead_nodes_back) {
  for (uint64_t key = 0; key < 50; ++key) fill({key << 30});
  const uint64_t nodes = index.node_count();
  for (uint64_t key = 1; key < 50; ++key) index.erase(key << 30);
  EXPECT_GT(index.dead_node_count(), 0u);
  index.reclaim();
  index.check_invariants();
  EXPECT_EQ(index.dead_node_count(), 0u);
  EXPECT_EQ(index.node_count(), 6u);  // the path to block 0
  EXPECT_EQ(pool.retired_count(), 0u);
  const uint64_t mapped = pool.mapped_bytes();
  for (uint64_t key = 1; key < 50; ++key) fill({key << 30});
  EXPECT_EQ(index.node_count(), nodes);
  EXPECT_EQ(pool.mapped_bytes(), mapped);
}

TEST_F(ScaleCacheIndexTest, reclaim_ends_an_empty_tree_but_for_its_root) {
  Keys keys = edge_keys();
  fill(keys);
  for (uint64_t key : keys) index.erase(key);
  index.reclaim();
  index.check_invariants();
  EXPECT_EQ(index.node_count(), 1u);
}

TEST_F(ScaleCacheIndexTest, a_failed_first_allocation_leaves_an_empty_index) {
  pool.fail_take_after(0);
  EXPECT_EQ(index.insert(9, 1), Insertion::kNoMemory);
  EXPECT_EQ(index.node_count(), 0u);
  EXPECT_EQ(index.insert(9, 1), Insertion::kInserted);
}

TEST_F(ScaleCacheIndexTest, costs_at_most_576_bytes_a_node) {
  fill({1});
  EXPECT_EQ(index.memory_bytes() - sizeof(index), sizeof(PageNode));
  EXPECT_LE(sizeof(PageNode), 576u);
}

// What the index should say, in a map.
struct Model {
  struct Value {
    uint64_t entry;
    bool is_dirty;
  };
  std::map<uint64_t, Value> values;

  ScaleCacheIndex::Run next_dirty_run(uint64_t from, uint64_t last, uint64_t blocks_max) const {
    ScaleCacheIndex::Run run;
    for (auto it = values.lower_bound(from); it != values.end() && it->first <= last; ++it) {
      if (run.count != 0 && it->first != run.first + run.count) break;
      if (!it->second.is_dirty) {
        if (run.count != 0) break;
        continue;
      }
      if (run.count == 0) run.first = it->first;
      if (++run.count == blocks_max) break;
    }
    return run;
  }
};

// One random step in both.
void step(ScaleCacheIndex& index, Model& model, Rng& rng, uint64_t key) {
  auto at = model.values.find(key);
  const bool there = at != model.values.end();
  switch (rng.below(9)) {
    case 8: {
      const uint64_t entry = 1 + rng.below(1000);
      uint32_t dirtied;
      ASSERT_TRUE(index.insert_dirty(key, entry, &dirtied));
      ASSERT_EQ(dirtied, there && at->second.is_dirty ? 0u : 1u);
      model.values.try_emplace(key, Model::Value{entry, true}).first->second.is_dirty = true;
      break;
    }
    case 0:
    case 1:
    case 2: {
      const uint64_t entry = 1 + rng.below(1000);
      ASSERT_EQ(index.insert(key, entry), there ? Insertion::kOccupied : Insertion::kInserted);
      if (!there) model.values[key] = {entry, false};
      break;
    }
    case 3:
    case 4:
      ASSERT_EQ(index.erase(key), there ? at->second.entry : 0);
      if (there) model.values.erase(at);
      break;
    case 5: {
      uint32_t dirtied;
      ASSERT_EQ(index.set_dirty(key, &dirtied), there);
      ASSERT_EQ(dirtied, there && !at->second.is_dirty ? 1u : 0u);
      if (there) at->second.is_dirty = true;
      break;
    }
    case 6: {
      const uint64_t count = 1 + rng.below(100);
      uint64_t cleared = 0;
      const bool erases = rng.below(2) == 0;
      ASSERT_EQ(index.clear_dirty(key, count, [](uint64_t i) { return i % 16 == 3; }), [&] {
        for (auto it = model.values.lower_bound(key); it != model.values.end() && it->first - key < count;
             ++it)
          if (it->first % 16 != 3) cleared += std::exchange(it->second.is_dirty, false);
        return cleared;
      }());
      if (!erases) break;
      index.erase_clean(key, count);
      for (auto it = model.values.lower_bound(key); it != model.values.end() && it->first - key < count;)
        it = it->second.is_dirty ? std::next(it) : model.values.erase(it);
      break;
    }
    default: {
      ASSERT_EQ(index.find(key), there ? at->second.entry : 0);
      ASSERT_EQ(index.is_dirty(key), there && at->second.is_dirty);
      auto next = model.values.lower_bound(key);
      ScaleCacheIndex::Found found = index.next_present(key);
      ASSERT_EQ(found.entry, next == model.values.end() ? 0 : next->second.entry);
      if (found.entry != 0) ASSERT_EQ(found.index, next->first);
      const uint64_t last = key + std::min(kLastIndex - key, rng.below(5000));
      ScaleCacheIndex::Run run = index.next_dirty_run(key, last, 20);
      ScaleCacheIndex::Run right = model.next_dirty_run(key, last, 20);
      ASSERT_EQ(run.count, right.count);
      ASSERT_EQ(run.first, right.first);
    }
  }
}

TEST_F(ScaleCacheIndexTest, agrees_with_a_map_under_random_operations) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Rng rng(seed);
    ScaleCacheIndex other(pool);
    Model model;
    const Keys edges = edge_keys();
    const uint64_t span = seed % 2 == 0 ? 300 : 20'000;
    for (int i = 0; i < 30'000; ++i) {
      const uint64_t key = seed > 4 && rng.below(3) == 0 ? edges[rng.below(edges.size())] : rng.below(span);
      ASSERT_NO_FATAL_FAILURE(step(other, model, rng, key)) << "seed " << seed << ", step " << i;
      if (rng.below(3000) == 0) other.reclaim();
      if (rng.below(3000) == 0) other.check_invariants();
    }
    other.check_invariants();
  }
}

}  // namespace
}  // namespace spw::lab
