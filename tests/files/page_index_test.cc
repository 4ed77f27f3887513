#include "files/page_index/page_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace spw::files {
namespace {

constexpr uint64_t kLastIndex = ~uint64_t{0};

struct Kit {
  UseSlots uses{std::move(*UseSlots::map_memory())};
  PageNodes pool{uses};
};

using Keys = std::vector<uint64_t>;
using Runs = std::vector<std::pair<uint64_t, uint64_t>>;

void insert(PageIndex& index, const Keys& keys) {
  for (uint64_t key : keys) {
    uint32_t dirtied = 0;
    ASSERT_TRUE(index.insert_dirty(key, &dirtied)) << key;
    ASSERT_EQ(dirtied, 1u) << key;
  }
}
// As what has been written goes.
uint64_t erase(PageIndex& index, uint64_t first, uint64_t count = 1) {
  const uint64_t cleared = index.clear_dirty(first, count, [](uint64_t) { return false; });
  index.erase_clean(first, count);
  return cleared;
}
Runs dirty_runs(PageIndex& index, uint64_t blocks_max = kLastIndex) {
  Runs runs;
  uint64_t from = 0;
  do {
    const PageIndex::Run run = index.next_dirty_run(from, kLastIndex, blocks_max);
    if (run.count == 0) break;
    runs.emplace_back(run.first, run.count);
    from = run.first + run.count;
  } while (from != 0);
  return runs;
}

class PageIndexTest : public testing::Test, protected Kit {
 protected:
  ~PageIndexTest() override { index.check_invariants(); }
  void fill(uint64_t first, uint64_t end) {
    for (uint64_t key = first; key < end; ++key) insert(index, {key});
  }

  PageIndex index{pool};
};

// Every level's first and last slot, and both ends.
Keys edge_keys() {
  Keys keys = {kLastIndex - 1, kLastIndex};
  for (unsigned shift = 0; shift < 64; shift += 6)
    for (uint64_t near : {uint64_t{1} << shift, (uint64_t{1} << shift) - 1, (uint64_t{1} << shift) + 1})
      keys.push_back(near);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

TEST_F(PageIndexTest, an_empty_index_has_nothing) {
  EXPECT_EQ(index.next_dirty_run(0, kLastIndex, 10).count, 0u);
  EXPECT_EQ(erase(index, 0, kLastIndex), 0u);
  index.prefetch(5);
  index.reclaim();
  EXPECT_EQ(pool.mapped_bytes(), 0u);
}

TEST_F(PageIndexTest, finds_what_was_inserted_at_the_edges_of_64_bits) {
  const Keys keys = edge_keys();
  insert(index, keys);
  for (uint64_t key : keys) {
    const PageIndex::Run run = index.next_dirty_run(key, kLastIndex, 1);
    EXPECT_EQ(run.first, key);
    EXPECT_EQ(run.count, 1u);
  }
  index.check_invariants();
  for (uint64_t key : keys) EXPECT_EQ(erase(index, key), 1u) << key;
  EXPECT_TRUE(dirty_runs(index).empty());
}

TEST_F(PageIndexTest, a_block_becomes_dirty_once) {
  insert(index, {7});
  uint32_t dirtied = 9;
  ASSERT_TRUE(index.insert_dirty(7, &dirtied));
  EXPECT_EQ(dirtied, 0u);
  index.clear_dirty(7, 1, [](uint64_t) { return false; });
  EXPECT_TRUE(dirty_runs(index).empty());
  insert(index, {7});  // which is there, and clean
  EXPECT_EQ(dirty_runs(index), (Runs{{7, 1}}));
}

TEST_F(PageIndexTest, dirty_runs_go_across_leaves_and_stop_at_gaps_and_at_the_limit) {
  fill(0, 300);
  index.clear_dirty(0, 60, [](uint64_t) { return false; });
  index.clear_dirty(200, 50, [](uint64_t) { return false; });
  EXPECT_EQ(erase(index, 251, 100), 49u);
  EXPECT_EQ(dirty_runs(index), (Runs{{60, 140}, {250, 1}}));
  EXPECT_EQ(dirty_runs(index, 100), (Runs{{60, 100}, {160, 40}, {250, 1}}));
  const PageIndex::Run run = index.next_dirty_run(100, 120, 1000);
  EXPECT_EQ(run.first, 100u);
  EXPECT_EQ(run.count, 21u);
}

TEST_F(PageIndexTest, a_run_is_inserted_across_leaves_and_counts_what_was_not_dirty) {
  insert(index, {100, 130});
  index.clear_dirty(130, 1, [](uint64_t) { return false; });  // there, and clean
  uint32_t dirtied = 9;
  ASSERT_TRUE(index.insert_dirty_run(50, 150, &dirtied));
  EXPECT_EQ(dirtied, 149u);
  EXPECT_EQ(dirty_runs(index), (Runs{{50, 150}}));
  ASSERT_TRUE(index.insert_dirty_run(60, 64, &dirtied));
  EXPECT_EQ(dirtied, 0u);
  index.check_invariants();
  EXPECT_EQ(erase(index, 0, kLastIndex), 150u);
  index.check_invariants();
  ASSERT_TRUE(index.insert_dirty_run(kLastIndex - 9, 10, &dirtied));
  EXPECT_EQ(dirtied, 10u);
  EXPECT_EQ(dirty_runs(index), (Runs{{kLastIndex - 9, 10}}));
}

TEST_F(PageIndexTest, dirty_runs_reach_the_last_block) {
  insert(index, {kLastIndex - 1, kLastIndex});
  EXPECT_EQ(dirty_runs(index, 100), (Runs{{kLastIndex - 1, 2}}));
  EXPECT_EQ(erase(index, kLastIndex - 1, 100), 2u);
  EXPECT_TRUE(dirty_runs(index).empty());
}

TEST_F(PageIndexTest, a_scan_beyond_a_small_tree_finds_nothing) {
  insert(index, {3});
  EXPECT_EQ(index.next_dirty_run(1000, 2000, 5).count, 0u);
  EXPECT_EQ(erase(index, uint64_t{1} << 50, kLastIndex), 0u);
}

TEST_F(PageIndexTest, clearing_keeps_what_its_owner_says_is_dirty_still) {
  fill(0, 200);
  EXPECT_EQ(index.clear_dirty(50, 100, [](uint64_t key) { return key == 77; }), 99u);
  index.erase_clean(50, 100);
  EXPECT_EQ(dirty_runs(index), (Runs{{0, 50}, {77, 1}, {150, 50}}));
}

TEST_F(PageIndexTest, tags_are_found_after_the_tree_has_grown) {
  insert(index, {1, kLastIndex});
  EXPECT_EQ(dirty_runs(index), (Runs{{1, 1}, {kLastIndex, 1}}));
}

TEST_F(PageIndexTest, a_dead_node_is_used_again) {
  insert(index, {1, 1'000'000});
  const uint64_t mapped = pool.mapped_bytes();
  for (int i = 0; i < 10; ++i) {
    erase(index, 1'000'000);
    EXPECT_EQ(index.dead_node_count(),
              3u);  // its leaf and two above, up to where the other one's path begins
    index.check_invariants();
    insert(index, {1'000'000});
    EXPECT_EQ(index.dead_node_count(), 0u);
    EXPECT_EQ(dirty_runs(index), (Runs{{1, 1}, {1'000'000, 1}}));
  }
  EXPECT_EQ(pool.mapped_bytes(), mapped);
}

// Each round in other leaves: their memory is that of the blocks that are dirty, not of those that ever were.
TEST_F(PageIndexTest, what_was_erased_leaves_its_memory_to_what_comes) {
  uint64_t mapped = 0;
  for (uint64_t round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < 500; ++i) insert(index, {(round * 500 + i) << 12});
    if (round == 0) mapped = pool.mapped_bytes();
    erase(index, 0, kLastIndex);
    EXPECT_LE(index.dead_node_count(), PageIndex::kDeadNodesMin);
    index.reclaim();
    index.check_invariants();
    EXPECT_EQ(index.dead_node_count(), 0u);
    EXPECT_EQ(pool.retired_count(), 0u);
  }
  EXPECT_LE(pool.mapped_bytes(),
            mapped + PageNodes::kSlabBytesMin);  // a tree of more blocks has one more node above
}

TEST_F(PageIndexTest, reclaim_ends_an_empty_tree_but_for_its_root) {
  insert(index, {0});
  erase(index, 0);
  insert(index, {kLastIndex});  // the empty root is a child then, and nobody has come by it as one
  erase(index, kLastIndex);
  index.reclaim();
  index.check_invariants();
  pool.fail_take_after(PageIndex::kHeightMax - 2);  // of the nodes below the root one too few
  uint32_t dirtied;
  EXPECT_FALSE(index.insert_dirty(0, &dirtied));
}

TEST_F(PageIndexTest, reclaimed_nodes_wait_for_a_reader) {
  insert(index, {0, 1 << 20});
  {
    UseSlots::Guard inside(uses);
    erase(index, 1 << 20);
    index.reclaim();
    EXPECT_EQ(pool.retired_count(), 3u);
  }
  index.reclaim();
  EXPECT_EQ(pool.retired_count(), 0u);
}

TEST_F(PageIndexTest, an_allocation_that_fails_leaves_the_tree_right) {
  for (uint64_t key : {uint64_t{5}, uint64_t{1} << 20, kLastIndex}) {
    for (int64_t n = 0;; ++n) {
      PageIndex other(pool);
      insert(other, {0, 64});
      pool.fail_take_after(n);
      uint32_t dirtied = 0;
      const bool is_there = other.insert_dirty(key, &dirtied);
      pool.fail_take_after(-1);
      other.check_invariants();
      if (is_there) {
        EXPECT_EQ(n, key == 5 ? 0 : key == kLastIndex ? 19 : 5) << key;
      } else {
        EXPECT_EQ(dirtied, 0u);
        EXPECT_EQ(dirty_runs(other), (Runs{{0, 1}, {64, 1}}));
        insert(other, {key});
      }
      other.check_invariants();
      EXPECT_EQ(dirty_runs(other),
                key == 5 ? (Runs{{0, 1}, {5, 1}, {64, 1}}) : (Runs{{0, 1}, {64, 1}, {key, 1}}));
      if (is_there) break;
    }
  }
}

TEST_F(PageIndexTest, a_failed_first_allocation_leaves_an_empty_index) {
  pool.fail_take_after(0);
  uint32_t dirtied;
  EXPECT_FALSE(index.insert_dirty(9, &dirtied));
  EXPECT_TRUE(dirty_runs(index).empty());
  insert(index, {9});
}

// What the index should say: of each block that is there whether it is dirty.
using Model = std::map<uint64_t, bool>;

PageIndex::Run next_dirty_run(const Model& model, uint64_t from, uint64_t last, uint64_t blocks_max) {
  PageIndex::Run run;
  for (auto it = model.lower_bound(from); it != model.end() && it->first <= last; ++it) {
    if (run.count != 0 && (!it->second || it->first != run.first + run.count)) break;
    if (!it->second) continue;
    if (run.count == 0) run.first = it->first;
    if (++run.count == blocks_max) break;
  }
  return run;
}

// One random step in both.
void step(PageIndex& index, Model& model, Rng& rng, uint64_t key) {
  const uint64_t count = 1 + rng.below(100);
  const auto in_range = [&](auto it) { return it != model.end() && it->first - key < count; };
  switch (rng.below(4)) {
    case 0:
    case 1: {
      uint32_t dirtied;
      ASSERT_TRUE(index.insert_dirty(key, &dirtied));
      ASSERT_EQ(dirtied, std::exchange(model[key], true) ? 0u : 1u);
      break;
    }
    case 2: {
      uint64_t cleared = 0;
      for (auto it = model.lower_bound(key); in_range(it); ++it)
        if (it->first % 16 != 3) cleared += std::exchange(it->second, false);
      ASSERT_EQ(index.clear_dirty(key, count, [](uint64_t i) { return i % 16 == 3; }), cleared);
      if (rng.below(2) == 0) break;
      index.erase_clean(key, count);
      for (auto it = model.lower_bound(key); in_range(it);) it = it->second ? std::next(it) : model.erase(it);
      break;
    }
    default: {
      const uint64_t last = key + std::min(kLastIndex - key, rng.below(5000));
      const PageIndex::Run run = index.next_dirty_run(key, last, 20);
      const PageIndex::Run right = next_dirty_run(model, key, last, 20);
      ASSERT_EQ(run.count, right.count);
      ASSERT_EQ(run.first, right.first);
    }
  }
}

TEST_F(PageIndexTest, agrees_with_a_map_under_random_operations) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Rng rng(seed);
    PageIndex other(pool);
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
}  // namespace spw::files
