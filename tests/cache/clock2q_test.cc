#include "cache/eviction/clock2q.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "policies.h"

namespace spw::cache {
namespace {

// Of which 10 are new or old, 5 of them new, and one more that has just come.
constexpr uint32_t kFrames = 60;
constexpr uint32_t kOnProbation = 11, kInMain = kFrames - kOnProbation;

// A cache without contents: what a partition does with its policy. A
// block is referenced from its miss on, as those are that a client fills.
class Cache final : public FrameProbe {
 public:
  Cache(const char* policy, uint32_t frames)
      : policy_(std::move(*make_policy(policy, frames))), frames_(frames), blocks_(frames) {}

  Verdict probe(uint32_t frame) override { return frames_.probe(frame); }
  void use(uint64_t block) {
    if (!holds(block)) {
      ++misses_;
      bring(block);
    }
    frames_.referenced[frame_of_[block]] = true;
  }
  void use_all(uint64_t first, uint64_t count) {
    for (uint64_t block = first; block < first + count; ++block) use(block);
  }
  // As read-ahead does.
  void bring(uint64_t block) {
    const uint32_t frame = used_ < blocks_.size() ? used_++ : evict();
    blocks_[frame] = block;
    frame_of_[block] = frame;
    policy_->on_insert(frame, BlockId(block));
  }
  bool holds(uint64_t block) const { return frame_of_.contains(block); }
  uint32_t held_of(uint64_t first, uint64_t count) const {
    uint32_t held = 0;
    for (uint64_t block = first; block < first + count; ++block) held += holds(block);
    return held;
  }
  void set_busy(uint64_t block, bool is_busy) { frames_.busy[frame_of_[block]] = is_busy; }
  void discard(uint64_t block) {
    const uint32_t frame = frame_of_[block];
    policy_->on_remove(frame, BlockId(blocks_[frame]));
    frame_of_.erase(block);
    frames_.referenced[frame] = false;
    policy_->on_insert(frame, BlockId(blocks_[frame] = ++fillers_));
    frame_of_[fillers_] = frame;
  }
  uint64_t misses() const { return misses_; }

 private:
  uint32_t evict() {
    const uint32_t frame = policy_->next_candidate(*this);
    SPW_CHECK(frame != kNoCandidate && !frames_.busy[frame] && holds(blocks_[frame]));
    policy_->on_remove(frame, BlockId(blocks_[frame]));
    frame_of_.erase(blocks_[frame]);
    frames_.referenced[frame] = false;
    return frame;
  }

  std::unique_ptr<Policy> policy_;
  Frames frames_;
  std::vector<uint64_t> blocks_;
  std::unordered_map<uint64_t, uint32_t> frame_of_;
  uint32_t used_ = 0;
  uint64_t misses_ = 0;
  uint64_t fillers_ = uint64_t{1} << 32;
};

// Blocks 0 to kFrames - 1 are in main, and as many of another number have gone through since, so that new and old are
// full. Some of main had to go for those.
class Clock2q : public testing::Test {
 protected:
  Clock2q() {
    cache.use_all(0, kFrames);
    cache.use_all(kBefore, kFrames);
    main_before = cache.held_of(0, kFrames);
  }
  static constexpr uint64_t kBefore = 1000, kScan = 10'000;
  Cache cache{"clock2q+", kFrames};
  uint32_t main_before = 0;
};

TEST_F(Clock2q, a_scan_leaves_main_alone) {
  EXPECT_EQ(main_before, kInMain);
  cache.use_all(kScan, 10 * kFrames);
  EXPECT_EQ(cache.held_of(0, kFrames), main_before) << "though none of them was used meanwhile";
  EXPECT_EQ(cache.held_of(kScan, 10 * kFrames), kOnProbation);
}

TEST_F(Clock2q, uses_within_the_window_do_not_count) {
  for (uint64_t block = kScan; block < kScan + kFrames; ++block)
    for (uint64_t recent = block; recent + 3 > block; --recent) cache.use(std::max(recent, kScan));
  EXPECT_EQ(cache.held_of(0, kFrames), main_before);
  EXPECT_EQ(cache.held_of(kScan, kFrames), kOnProbation);
}

TEST_F(Clock2q, a_use_after_the_window_makes_a_block_stay) {
  cache.use(kScan);
  cache.use_all(kScan + 1, 7);
  cache.use(kScan);
  cache.use_all(kScan + 100, 10 * kFrames);
  EXPECT_TRUE(cache.holds(kScan));
  EXPECT_EQ(cache.held_of(0, kFrames), main_before - 1) << "one of main made room for it";
}

TEST_F(Clock2q, a_block_held_through_the_window_was_used_once) {
  cache.use(kScan);
  cache.set_busy(kScan, true);
  cache.use_all(kScan + 1, 30);
  ASSERT_TRUE(cache.holds(kScan));
  cache.set_busy(kScan, false);
  cache.use_all(kScan + 100, 30);
  EXPECT_FALSE(cache.holds(kScan));
  EXPECT_EQ(cache.held_of(0, kFrames), main_before);
}

TEST_F(Clock2q, the_first_use_of_a_block_read_ahead_does_not_make_it_stay) {
  cache.bring(kScan);
  cache.use_all(kScan + 1, 7);
  cache.use(kScan);
  cache.use_all(kScan + 100, 7);
  EXPECT_TRUE(cache.holds(kScan)) << "it gets as long as one that was just missed";
  cache.use_all(kScan + 200, 20);
  EXPECT_FALSE(cache.holds(kScan));
}

TEST_F(Clock2q, the_second_use_of_a_block_read_ahead_does) {
  cache.bring(kScan);
  cache.use_all(kScan + 1, 7);
  cache.use(kScan);
  cache.use_all(kScan + 100, 7);
  cache.use(kScan);
  cache.use_all(kScan + 200, 10 * kFrames);
  EXPECT_TRUE(cache.holds(kScan));
}

TEST_F(Clock2q, a_ghost_that_comes_back_goes_to_main) {
  cache.use_all(kScan, 20);
  ASSERT_FALSE(cache.holds(kScan));
  cache.use(kScan);
  cache.use_all(kScan + 100, 10 * kFrames);
  EXPECT_TRUE(cache.holds(kScan));
}

TEST_F(Clock2q, a_block_away_for_too_long_is_like_a_new_one) {
  cache.use_all(kScan, 20 + 2 * kFrames);
  cache.use(kScan);
  cache.use_all(kScan + 1000, 20);
  EXPECT_FALSE(cache.holds(kScan));
}

TEST_F(Clock2q, a_block_that_was_discarded_leaves_no_ghost) {
  cache.use(kScan);
  cache.discard(kScan);
  cache.use(kScan);
  cache.use_all(kScan + 100, 20);
  EXPECT_FALSE(cache.holds(kScan));
}

TEST_F(Clock2q, a_block_of_main_that_is_used_gets_a_second_chance) {
  cache.use_all(kScan, 50);
  // Each comes back, and takes the place of one of main.
  for (uint64_t block = kScan; block < kScan + 30; ++block) {
    cache.use(99);
    cache.use(block);
  }
  EXPECT_TRUE(cache.holds(99));
  EXPECT_EQ(cache.held_of(0, kFrames), main_before - 29) << "the first took that of an old one";
}

TEST(Clock2qFirstBlocks, the_first_part_of_a_loop_stays) {
  Cache cache("clock2q+", kFrames);
  constexpr uint64_t kLoop = 4 * kFrames;
  for (int round = 0; round < 5; ++round) cache.use_all(0, kLoop);
  EXPECT_EQ(cache.misses(), 5 * kLoop - 4 * kInMain) << "what fits into main is read once";
}

class Clock2qAlone : public testing::Test {
 protected:
  static constexpr uint32_t kFew = 14;  // 2 new or old, one of them new
  void insert(uint32_t first, uint32_t count) {
    for (uint32_t f = first; f < first + count; ++f) policy.on_insert(f, BlockId(f));
  }
  Frames frames{kFew};
  Clock2qPolicy policy{kFew};
};

TEST_F(Clock2qAlone, gives_up_when_every_frame_is_busy) {
  insert(0, 10);
  frames.busy.assign(kFew, true);
  EXPECT_EQ(policy.next_candidate(frames), kNoCandidate) << "all in main";
  insert(10, 4);
  frames.looks = 0;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(policy.next_candidate(frames), kNoCandidate);
  EXPECT_LE(frames.looks, 10u * 2 * kFew);
  policy.check_invariants(std::vector<uint8_t>(kFew, 1));
}

TEST_F(Clock2qAlone, gives_up_when_all_are_on_offer) {
  insert(0, kFew);
  for (uint32_t i = 0; i < kFew; ++i) EXPECT_EQ(policy.next_candidate(frames), i);
  EXPECT_EQ(policy.next_candidate(frames), kNoCandidate);
  policy.check_invariants(std::vector<uint8_t>(kFew));
}

TEST_F(Clock2qAlone, the_window_goes_when_nothing_else_is_left) {
  insert(0, 13);
  EXPECT_EQ(policy.next_candidate(frames), 0u);
  insert(13, 1);
  for (uint32_t f = 0; f < 13; ++f) frames.busy[f] = true;
  frames.referenced[13] = true;
  EXPECT_EQ(policy.next_candidate(frames), 13u);
}

TEST_F(Clock2qAlone, a_frame_kept_goes_back_to_its_list_as_the_last) {
  insert(0, 10);
  EXPECT_EQ(policy.next_candidate(frames), 0u);
  policy.on_keep(0);
  insert(10, 4);
  EXPECT_EQ(policy.next_candidate(frames), 10u) << "old";
  policy.on_keep(10);
  EXPECT_EQ(policy.next_candidate(frames), 11u);
  EXPECT_EQ(policy.next_candidate(frames), 12u);
  EXPECT_EQ(policy.next_candidate(frames), 1u) << "main: two on probation are no more than may be";
  for (uint32_t expected = 2; expected < 10; ++expected) EXPECT_EQ(policy.next_candidate(frames), expected);
  EXPECT_EQ(policy.next_candidate(frames), 0u);
  EXPECT_EQ(policy.next_candidate(frames), 10u) << "main is empty";
}

// ---- Misses, in comparison ----

using Trace = std::function<void(Cache&)>;

uint64_t misses(const char* policy, const Trace& trace) {
  constexpr uint32_t kMany = 1000;
  Cache cache(policy, kMany);
  trace(cache);
  testing::Test::RecordProperty(policy_case_name(policy), std::to_string(cache.misses()));
  return cache.misses();
}

// Block b is used with a frequency of about 1 / (b + 1).
class Zipf {
 public:
  explicit Zipf(size_t blocks) : sums_(blocks) {
    double sum = 0;
    for (size_t b = 0; b < blocks; ++b) sums_[b] = sum += 1.0 / static_cast<double>(b + 1);
  }
  uint64_t next(Rng& rng) const {
    const double at = sums_.back() * static_cast<double>(rng.below(uint64_t{1} << 32)) * 0x1p-32;
    return static_cast<uint64_t>(std::upper_bound(sums_.begin(), sums_.end(), at) - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

void zipf_and_scans(Cache& cache) {
  const Zipf zipf(4000);
  Rng rng(1);
  for (uint64_t scan = 0; scan < 100; ++scan) {
    for (int i = 0; i < 3000; ++i) cache.use(zipf.next(rng));
    for (uint64_t i = 0; i < 2000; ++i)
      for (int uses = 0; uses < 3; ++uses) cache.use(1'000'000 + 2000 * scan + i);
  }
}

void zipf_beside_a_scan(Cache& cache) {
  const Zipf zipf(4000);
  Rng rng(1);
  for (uint64_t i = 0; i < 200'000; ++i) {
    cache.use(zipf.next(rng));
    for (int uses = 0; uses < 3; ++uses) cache.use(1'000'000 + i);
  }
}

void expect_far_fewer_than_clock(const Trace& trace) {
  constexpr uint64_t kOfScans = 200'000;  // whatever the policy
  EXPECT_LT(misses("clock2q+", trace) - kOfScans, (misses("clock", trace) - kOfScans) * 6 / 10);
}

TEST(Clock2qMisses, scans_cost_far_fewer_of_what_is_needed_than_under_clock) {
  expect_far_fewer_than_clock(zipf_and_scans);
}

TEST(Clock2qMisses, a_scan_beside_other_uses_costs_far_fewer_of_them_than_under_clock) {
  expect_far_fewer_than_clock(zipf_beside_a_scan);
}

TEST(Clock2qMisses, a_loop_of_half_as_much_again_as_memory_costs_little_more_than_half) {
  const Trace loop = [](Cache& cache) {
    for (int round = 0; round < 40; ++round) cache.use_all(0, 1500);
  };
  EXPECT_EQ(misses("clock", loop), 40u * 1500) << "always evicts what is needed next";
  EXPECT_LT(misses("clock2q+", loop), 40u * 1500 * 55 / 100);
}

TEST(Clock2qMisses, random_uses_cost_as_many_as_under_clock) {
  const Trace uniform = [](Cache& cache) {
    Rng rng(1);
    for (int i = 0; i < 200'000; ++i) cache.use(rng.below(2000));
  };
  EXPECT_LE(misses("clock2q+", uniform), misses("clock", uniform) * 102 / 100);
}

// A phase that begins when main is full of another's blocks: each of its blocks is read twice at most, and then stays.
TEST(Clock2qMisses, what_a_new_phase_needs_comes_into_main) {
  const Trace two_phases = [](Cache& cache) {
    Rng rng(1);
    for (int i = 0; i < 20'000; ++i) cache.use(100'000 + rng.below(1500));
    const uint64_t before = cache.misses();
    for (int round = 0; round < 40; ++round) cache.use_all(0, 900);
    EXPECT_LE(cache.misses() - before, 2u * 900);
  };
  misses("clock2q+", two_phases);
}

}  // namespace
}  // namespace spw::cache
