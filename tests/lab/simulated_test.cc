// Policies in a simulated cache, against simulations that know nothing of frames, candidates or probes: written from
// the papers, as libCacheSim has them. The same accesses have to miss, on traces of all shapes.
#include <gtest/gtest.h>

#include <list>
#include <unordered_map>

#include "base/rng.h"
#include "lab/policies/shares.h"
#include "lab/policies/simulate.h"
#include "lab/policies/traces.h"

namespace spw::lab {
namespace {

constexpr uint64_t kAccesses = 200'000;
constexpr uint32_t kData = 8'000;

class Queue {
 public:
  bool contains(uint64_t block) const { return place_.contains(block); }
  size_t size() const { return blocks_.size(); }
  uint64_t oldest() const { return blocks_.back(); }
  void push(uint64_t block) {
    blocks_.push_front(block);
    place_[block] = blocks_.begin();
  }
  void drop(uint64_t block) {
    blocks_.erase(place_.at(block));
    place_.erase(block);
  }

 private:
  std::list<uint64_t> blocks_;
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> place_;
};

uint64_t lru_misses(size_t size, const std::vector<uint64_t>& blocks) {
  Queue queue;
  uint64_t misses = 0;
  for (const uint64_t block : blocks) {
    if (queue.contains(block)) {
      queue.drop(block);
    } else {
      ++misses;
      if (queue.size() == size) queue.drop(queue.oldest());
    }
    queue.push(block);
  }
  return misses;
}

// Second chance, with one bit.
uint64_t clock_misses(size_t size, const std::vector<uint64_t>& blocks) {
  Queue queue;
  std::unordered_map<uint64_t, bool> used;
  uint64_t misses = 0;
  for (const uint64_t block : blocks) {
    if (!queue.contains(block)) {
      ++misses;
      while (queue.size() == size) {
        const uint64_t oldest = queue.oldest();
        queue.drop(oldest);
        if (used[oldest]) queue.push(oldest);
        used[oldest] = false;
      }
      queue.push(block);
    }
    used[block] = true;
  }
  return misses;
}

// Algorithm 1 of the paper. A ghost is one for as many departures as main has room for, as ours are (ghosts.h).
uint64_t s3_fifo_misses(size_t size, const std::vector<uint64_t>& blocks) {
  const size_t small_max = size / 10, ghosts_max = size - size / 10;
  Queue small, main;
  std::unordered_map<uint64_t, uint64_t> left_at;  // of ghosts: the number of departures then
  uint64_t departures = 0;
  std::unordered_map<uint64_t, int> uses;
  uint64_t misses = 0;
  const auto evict = [&] {
    while (true) {
      Queue& from = small.size() >= small_max || main.size() == 0 ? small : main;
      const uint64_t oldest = from.oldest();
      from.drop(oldest);
      if (&from == &small && uses[oldest] > 1) {
        uses[oldest] = 0;
        main.push(oldest);
      } else if (&from == &main && uses[oldest] > 0) {
        --uses[oldest];
        main.push(oldest);
      } else {
        if (&from == &small) left_at[oldest] = ++departures;
        return;
      }
    }
  };
  for (const uint64_t block : blocks) {
    if (small.contains(block) || main.contains(block)) {
      uses[block] = std::min(uses[block] + 1, 3);
      continue;
    }
    ++misses;
    if (small.size() + main.size() == size) evict();
    const auto ghost = left_at.find(block);
    const bool came_back = ghost != left_at.end() && departures - ghost->second < ghosts_max;
    if (came_back) left_at.erase(ghost);
    uses[block] = 0;
    (came_back ? main : small).push(block);
  }
  return misses;
}

class Simulated : public testing::Test {
 protected:
  // `points_max`: of the miss ratio, for what the two may differ in.
  template <class Misses>
  static void expect_same(const char* policy, Misses misses, double points_max) {
    for (const NamedTrace& trace : all_traces(kAccesses, kData)) {
      for (const uint32_t frames : {kData / 40, kData / 10, kData / 4, kData * 3 / 4}) {
        const double expected =
            static_cast<double>(misses(frames, trace.blocks)) / static_cast<double>(trace.blocks.size());
        EXPECT_NEAR(miss_ratio(policy, frames, trace.blocks), expected, points_max / 100)
            << trace.name << ", " << frames;
      }
    }
  }
};

TEST_F(Simulated, lru_misses_what_a_list_misses) { expect_same("lru", lru_misses, 0); }

TEST_F(Simulated, clock_misses_what_a_queue_with_second_chances_misses) {
  expect_same("clock", clock_misses, 0);
}

// Its ghosts lie in sets, of which a full one forgets a little early.
TEST_F(Simulated, s3_fifo_misses_nearly_what_the_papers_algorithm_misses) {
  expect_same("s3-fifo", s3_fifo_misses, 0.5);
}

// ---- Shares ----

TEST(Shares, the_cheapest_division_is_found) {
  // Two units in all: the first part gains by its first one, the second by having both.
  EXPECT_EQ(least_cost(std::vector<std::vector<uint64_t>>{{10, 4, 4}, {10, 9, 1}}), 11u);
  EXPECT_EQ(least_cost(std::vector<std::vector<uint64_t>>{{10, 4, 4}, {10, 7, 5}}), 11u);
  EXPECT_EQ(least_cost(std::vector<std::vector<uint64_t>>{{3, 2, 0}}), 0u);
}

TEST(Shares, of_a_loop_some_parts_stay_and_the_others_miss) {
  const NamedTrace trace = loop(200'000, 8000);
  const uint64_t missed = misses_with_best_shares("lru", 4096, trace.blocks);
  // Half of the loop fits, and is missed once.
  EXPECT_NEAR(static_cast<double>(missed), 200'000 / 2 + 4000, 2000);
}

TEST(Shares, where_all_places_are_alike_they_change_nothing) {
  const NamedTrace trace = uniform(200'000, 8000, 1);
  const double missed = static_cast<double>(misses_with_best_shares("lru", 4096, trace.blocks)) / 200'000;
  EXPECT_NEAR(missed, miss_ratio("lru", 4096, trace.blocks), 0.02);
}

}  // namespace
}  // namespace spw::lab
