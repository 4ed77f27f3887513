#include "cache/eviction/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "cache/eviction/ghosts.h"
#include "policies.h"

namespace spw::cache {
namespace {

std::unique_ptr<Policy> clock_of(uint32_t frames) { return std::move(*make_policy("clock", frames)); }

TEST(Clock, goes_round_in_frame_order) {
  Frames frames(4);
  auto clock = clock_of(4);
  for (uint32_t expected : {0u, 1u, 2u, 3u, 0u}) EXPECT_EQ(clock->next_candidate(frames), expected);
}

TEST(Clock, a_used_frame_gets_a_second_chance_once) {
  Frames frames(3);
  auto clock = clock_of(3);
  frames.referenced[0] = true;
  EXPECT_EQ(clock->next_candidate(frames), 1u);
  EXPECT_EQ(clock->next_candidate(frames), 2u);
  EXPECT_EQ(clock->next_candidate(frames), 0u);
}

TEST(Clock, when_all_were_used_the_first_goes_after_one_round) {
  Frames frames(5);
  auto clock = clock_of(5);
  frames.referenced.assign(5, true);
  EXPECT_EQ(clock->next_candidate(frames), 0u);
  EXPECT_EQ(frames.looks, 6u);
}

TEST(Clock, busy_frames_are_passed_over) {
  Frames frames(3);
  auto clock = clock_of(3);
  frames.busy[0] = frames.busy[1] = true;
  EXPECT_EQ(clock->next_candidate(frames), 2u);
}

TEST(Clock, gives_up_when_every_frame_is_busy) {
  Frames frames(3);
  auto clock = clock_of(3);
  frames.busy.assign(3, true);
  EXPECT_EQ(clock->next_candidate(frames), kNoCandidate);
  EXPECT_LE(frames.looks, 6u);
}

class Lru : public testing::Test {
 protected:
  Lru() {
    for (uint32_t f = 0; f < 4; ++f) lru->on_insert(f, BlockId(f));
  }
  Frames frames{4};
  std::unique_ptr<Policy> lru = std::move(*make_policy("lru", 4));
};

TEST_F(Lru, the_longest_unused_goes_first) {
  lru->on_touch(0);
  lru->on_touch(2);
  for (uint32_t expected : {1u, 3u, 0u, 2u}) EXPECT_EQ(lru->next_candidate(frames), expected);
  EXPECT_EQ(lru->next_candidate(frames), kNoCandidate) << "all are on offer";
}

TEST_F(Lru, a_frame_kept_is_the_last_to_go) {
  EXPECT_EQ(lru->next_candidate(frames), 0u);
  lru->on_keep(0);
  for (uint32_t expected : {1u, 2u, 3u, 0u}) EXPECT_EQ(lru->next_candidate(frames), expected);
}

TEST_F(Lru, late_touches_of_frames_that_left_do_no_harm) {
  EXPECT_EQ(lru->next_candidate(frames), 0u);
  lru->on_remove(0, BlockId(0));
  lru->on_remove(2, BlockId(2));
  EXPECT_EQ(lru->next_candidate(frames), 1u);
  for (uint32_t f : {0u, 1u, 2u}) lru->on_touch(f);
  EXPECT_EQ(lru->next_candidate(frames), 3u);
  EXPECT_EQ(lru->next_candidate(frames), kNoCandidate);
  lru->check_invariants({0, 0, 0, 0});
}

TEST_F(Lru, busy_frames_are_passed_over_once_each) {
  frames.busy = {true, false, true, true};
  EXPECT_EQ(lru->next_candidate(frames), 1u);
  frames.looks = 0;
  EXPECT_EQ(lru->next_candidate(frames), kNoCandidate);
  EXPECT_LE(frames.looks, 4u);
}

TEST_F(Lru, a_frame_whose_last_touch_was_lost_is_still_offered) {
  frames.busy[0] = true;  // pinned, and looked at meanwhile
  for (uint32_t expected : {1u, 2u, 3u}) EXPECT_EQ(lru->next_candidate(frames), expected);
  EXPECT_EQ(lru->next_candidate(frames), kNoCandidate);
  frames.busy[0] = false;  // unpinned without a word
  EXPECT_EQ(lru->next_candidate(frames), 0u);
}

class S3Fifo : public testing::Test {
 protected:
  static constexpr uint32_t kFrames = 20;  // two of them small
  void use(uint32_t frame, int times) {
    for (int i = 0; i < times; ++i) s3fifo->on_touch(frame);
  }
  // As a miss does: the use that brought it in ends, too.
  void bring(uint32_t first, uint32_t end) {
    for (uint32_t f = first; f < end; ++f) {
      s3fifo->on_insert(f, BlockId(f));
      use(f, 1);
    }
  }
  uint32_t evict() {
    const uint32_t frame = s3fifo->next_candidate(frames);
    if (frame != kNoCandidate) s3fifo->on_remove(frame, BlockId(frame));
    return frame;
  }
  Frames frames{kFrames};
  std::unique_ptr<Policy> s3fifo = std::move(*make_policy("s3-fifo", kFrames));
};

TEST_F(S3Fifo, new_blocks_go_in_the_order_they_came_unless_used_more_than_once) {
  bring(0, 5);
  use(0, 2);
  use(1, 1);
  for (uint32_t expected : {1u, 2u, 3u}) EXPECT_EQ(evict(), expected);
}

TEST_F(S3Fifo, what_comes_back_stays_longer_than_what_is_new) {
  bring(0, 5);
  EXPECT_EQ(evict(), 0u);
  bring(0, 1);
  bring(5, kFrames);
  for (uint32_t f = 1; f < kFrames - 1; ++f) EXPECT_EQ(evict(), f);
  EXPECT_EQ(evict(), 0u) << "one is left in small, less than its share";
}

TEST_F(S3Fifo, in_main_each_use_is_worth_a_round) {
  bring(0, 4);
  for (uint32_t f = 0; f < 4; ++f) use(f, 2);
  EXPECT_EQ(evict(), 0u) << "all but the last went to main, where their uses begin anew";
  use(1, 2);
  use(2, 1);
  for (uint32_t expected : {2u, 1u, 3u}) EXPECT_EQ(evict(), expected);
}

TEST_F(S3Fifo, gives_up_when_every_frame_is_busy) {
  bring(0, kFrames);
  frames.busy.assign(kFrames, true);
  EXPECT_EQ(s3fifo->next_candidate(frames), kNoCandidate);
  EXPECT_LE(frames.looks, 10 * kFrames);
}

// What a policy should do, whatever that costs: all frames in one queue, in the order they will be looked at.
class Reference {
 public:
  virtual ~Reference() = default;
  virtual void insert(uint32_t frame, BlockId block) = 0;
  virtual void keep(uint32_t frame) = 0;
  virtual void remove(uint32_t frame) = 0;
  virtual void touch(uint32_t frame) = 0;
  virtual uint32_t next(FrameProbe& frames) = 0;
  virtual bool goes_along(uint32_t frame) = 0;
};

class ReferenceClock final : public Reference {
 public:
  explicit ReferenceClock(uint32_t count) {
    for (uint32_t f = 0; f < count; ++f) queue_.push_back(f);
  }
  void insert(uint32_t, BlockId) override {}
  void keep(uint32_t) override {}
  void remove(uint32_t) override {}
  void touch(uint32_t) override {}
  bool goes_along(uint32_t) override { return true; }
  uint32_t next(FrameProbe& frames) override {
    for (size_t looks = 2 * queue_.size(); looks > 0; --looks) {
      uint32_t frame = queue_.front();
      queue_.pop_front();
      queue_.push_back(frame);
      if (frames.probe(frame) == FrameProbe::Verdict::kEvictable) return frame;
    }
    return kNoCandidate;
  }

 private:
  std::deque<uint32_t> queue_;
};

// By the time of the last use: the least goes first.
class ReferenceLru final : public Reference {
 public:
  explicit ReferenceLru(uint32_t count) : used_at_(count) {}
  void insert(uint32_t frame, BlockId) override { used_at_[frame] = ++now_; }
  void keep(uint32_t frame) override { used_at_[frame] = ++now_; }
  void remove(uint32_t frame) override { used_at_[frame] = 0; }
  bool goes_along(uint32_t) override { return false; }
  void touch(uint32_t frame) override {
    if (used_at_[frame] != 0) used_at_[frame] = ++now_;
  }
  uint32_t next(FrameProbe& frames) override {
    std::vector<std::pair<uint64_t, uint32_t>> by_age;
    for (uint32_t f = 0; f < used_at_.size(); ++f)
      if (used_at_[f] != 0) by_age.emplace_back(used_at_[f], f);
    std::sort(by_age.begin(), by_age.end());
    for (auto [used_at, frame] : by_age) {
      bool busy = frames.probe(frame) == FrameProbe::Verdict::kBusy;
      used_at_[frame] = busy ? ++now_ : 0;
      if (!busy) return frame;
    }
    return kNoCandidate;
  }

 private:
  std::vector<uint64_t> used_at_;  // 0: empty or on offer
  uint64_t now_ = 0;
};

// Three queues, their fronts looked at first. Ghosts are the real ones (ghosts_test.cc): which of them a full set
// forgets is no part of the rule.
class ReferenceClock2q final : public Reference {
 public:
  explicit ReferenceClock2q(uint32_t count)
      : share_(count / 6), window_(share_ / 2), ghosts_(2 * count), rank_(count), block_(count) {}
  void insert(uint32_t frame, BlockId block) override {
    block_[frame] = block;
    const bool came_back = !filling_up_ && ghosts_.came_back(Ghosts::of(block));
    move(frame, filling_up_ ? kMain : came_back ? kReturned : kNew);
  }
  void keep(uint32_t frame) override { move(frame, rank_[frame]); }
  void remove(uint32_t frame) override {
    const bool was_offered = !drop(frame);
    if (was_offered && rank_[frame] != kMain && rank_[frame] != kReturned)
      ghosts_.left(Ghosts::of(block_[frame]));
  }
  void touch(uint32_t) override {}
  bool goes_along(uint32_t frame) override { return drop(frame); }
  uint32_t next(FrameProbe& frames) override {
    filling_up_ = false;
    for (int i = 0; i < 4 && queues_[kNew].size() > window_; ++i) {
      const uint32_t frame = queues_[kNew].front();
      switch (frames.probe(frame)) {
        case FrameProbe::Verdict::kBusy:
          move(frame, kNew);
          break;
        case FrameProbe::Verdict::kReferenced:
          move(frame, kOld);
          break;
        case FrameProbe::Verdict::kEvictable:
          move(frame, kOldUnused);
      }
    }
    for (int i = 0; i < 4 && queues_[kReturned].size() > window_; ++i) {
      const uint32_t frame = queues_[kReturned].front();
      move(frame, frames.probe(frame) == FrameProbe::Verdict::kBusy ? kReturned : kMain);
    }
    const bool many = queues_[kNew].size() + queues_[kOld].size() > share_;
    uint32_t found = many ? of_old(frames) : of_main(frames);
    if (found == kNoCandidate) found = many ? of_main(frames) : of_old(frames);
    if (found == kNoCandidate && !many) found = of_main(frames);
    if (found == kNoCandidate) found = of_window(kNew, frames);
    if (found == kNoCandidate) found = of_window(kReturned, frames);
    return found;
  }

 private:
  // kOldUnused is in kOld's queue.
  enum Rank : uint8_t { kNew, kOld, kMain, kReturned, kOldUnused };

  bool drop(uint32_t frame) {
    for (std::deque<uint32_t>& queue : queues_)
      if (std::erase(queue, frame) > 0) return true;
    return false;
  }
  void move(uint32_t frame, Rank rank) {
    drop(frame);
    rank_[frame] = rank;
    queues_[rank == kOldUnused ? kOld : rank].push_back(frame);
  }
  uint32_t of_old(FrameProbe& frames) {
    for (const uint32_t frame : std::deque<uint32_t>(queues_[kOld])) {
      const FrameProbe::Verdict verdict = frames.probe(frame);
      if (verdict == FrameProbe::Verdict::kEvictable) return drop(frame), frame;
      if (verdict == FrameProbe::Verdict::kBusy)
        move(frame, rank_[frame]);
      else
        move(frame, rank_[frame] == kOldUnused ? kOld : kMain);
    }
    return kNoCandidate;
  }
  uint32_t of_main(FrameProbe& frames) {
    for (int round = 0; round < 2; ++round) {
      for (const uint32_t frame : std::deque<uint32_t>(queues_[kMain])) {
        if (frames.probe(frame) == FrameProbe::Verdict::kEvictable) return drop(frame), frame;
        move(frame, kMain);
      }
    }
    return kNoCandidate;
  }
  uint32_t of_window(Rank window, FrameProbe& frames) {
    for (const uint32_t frame : std::deque<uint32_t>(queues_[window])) {
      if (frames.probe(frame) != FrameProbe::Verdict::kBusy) return drop(frame), frame;
      move(frame, window);
    }
    return kNoCandidate;
  }

  const size_t share_;
  const size_t window_;
  Ghosts ghosts_;
  std::deque<uint32_t> queues_[4];
  std::vector<Rank> rank_;
  std::vector<BlockId> block_;
  bool filling_up_ = true;
};

// The paper's algorithm 1, on two queues. Ghosts as above.
class ReferenceS3Fifo final : public Reference {
 public:
  explicit ReferenceS3Fifo(uint32_t count)
      : small_share_(count / 10),
        ghosts_(count - count / 10),
        uses_(count),
        of_small_(count),
        block_(count) {}
  void insert(uint32_t frame, BlockId block) override {
    block_[frame] = block;
    uses_[frame] = -1;
    of_small_[frame] = !ghosts_.came_back(Ghosts::of(block));
    queue(frame).push_back(frame);
  }
  void keep(uint32_t frame) override { queue(frame).push_back(frame); }
  void remove(uint32_t frame) override {
    const bool was_offered = std::erase(queue(frame), frame) == 0;
    if (was_offered && of_small_[frame]) ghosts_.left(Ghosts::of(block_[frame]));
  }
  void touch(uint32_t frame) override { uses_[frame] = std::min(uses_[frame] + 1, 3); }
  bool goes_along(uint32_t frame) override {
    return uses_[frame] <= 0 && std::erase(queue(frame), frame) > 0;
  }
  uint32_t next(FrameProbe& frames) override {
    uint32_t found = small_.size() >= small_share_ ? evict_small(frames) : kNoCandidate;
    if (found == kNoCandidate) found = evict_main(frames);
    if (found == kNoCandidate) found = evict_small(frames);
    if (found == kNoCandidate) found = evict_main(frames);
    return found;
  }

 private:
  std::deque<uint32_t>& queue(uint32_t frame) { return of_small_[frame] ? small_ : main_; }
  uint32_t evict_small(FrameProbe& frames) {
    for (size_t looks = small_.size(); looks > 0; --looks) {
      const uint32_t frame = small_.front();
      small_.pop_front();
      if (frames.probe(frame) == FrameProbe::Verdict::kBusy) {
        small_.push_back(frame);
      } else if (uses_[frame] > 1) {
        uses_[frame] = 0;
        of_small_[frame] = false;
        main_.push_back(frame);
        if (small_.size() < small_share_) break;
      } else {
        return frame;
      }
    }
    return kNoCandidate;
  }
  uint32_t evict_main(FrameProbe& frames) {
    for (size_t looks = 4 * main_.size(); looks > 0; --looks) {
      const uint32_t frame = main_.front();
      main_.pop_front();
      const bool is_busy = frames.probe(frame) == FrameProbe::Verdict::kBusy;
      if (!is_busy && uses_[frame] <= 0) return frame;
      if (!is_busy) --uses_[frame];
      main_.push_back(frame);
    }
    return kNoCandidate;
  }

  const size_t small_share_;
  Ghosts ghosts_;
  std::deque<uint32_t> small_, main_;
  std::vector<int> uses_;
  std::vector<bool> of_small_;
  std::vector<BlockId> block_;
};

std::unique_ptr<Reference> reference_of(std::string_view policy, uint32_t frames) {
  if (policy == "lru") return std::make_unique<ReferenceLru>(frames);
  if (policy == "clock2q+") return std::make_unique<ReferenceClock2q>(frames);
  if (policy == "s3-fifo") return std::make_unique<ReferenceS3Fifo>(frames);
  return std::make_unique<ReferenceClock>(frames);
}

class AgainstReference : public testing::TestWithParam<const char*> {
 protected:
  static constexpr uint32_t kFrames = 37;
  static constexpr uint64_t kBlocks = 60;  // few enough for ghosts to come back
  enum class Place : uint8_t { kEmpty, kHeld, kOffered };

  // A frame that is empty or on offer is busy too, as the partition says.
  Frames view() const {
    Frames frames(kFrames);
    frames.referenced = referenced_;
    for (uint32_t f = 0; f < kFrames; ++f) frames.busy[f] = pinned_[f] || places_[f] != Place::kHeld;
    return frames;
  }
  void leave_offer(uint32_t frame, bool evicted) {
    places_[frame] = evicted ? Place::kEmpty : Place::kHeld;
    evicted ? policy_->on_remove(frame, blocks_[frame]) : policy_->on_keep(frame);
    evicted ? reference_->remove(frame) : reference_->keep(frame);
  }
  void offer() {
    Frames for_policy = view(), for_reference = view();
    uint32_t got = policy_->next_candidate(for_policy);
    ASSERT_EQ(got, reference_->next(for_reference));
    ASSERT_EQ(for_policy.referenced, for_reference.referenced);
    referenced_ = for_policy.referenced;
    if (got == kNoCandidate) return;
    ASSERT_EQ(places_[got], Place::kHeld);
    places_[got] = Place::kOffered;
  }
  // As a neighbour of one that is on offer.
  void offer_along(uint32_t frame) {
    if (places_[frame] != Place::kHeld || pinned_[frame]) return;
    const bool goes = policy_->goes_along(frame);
    ASSERT_EQ(goes, reference_->goes_along(frame));
    if (!goes) return;
    places_[frame] = Place::kOffered;
    referenced_[frame] = false;
  }
  void insert(uint32_t frame, BlockId block) {
    for (uint32_t other = 0; other < kFrames; ++other)
      if (places_[other] != Place::kEmpty && blocks_[other] == block) return;
    places_[frame] = Place::kHeld;
    blocks_[frame] = block;
    policy_->on_insert(frame, block);
    reference_->insert(frame, block);
  }
  void step(Rng& rng) {
    auto frame = static_cast<uint32_t>(rng.below(kFrames));
    switch (rng.below(9)) {
      case 0:
      case 1:
        return offer();
      case 8:
        return offer_along(frame);
      case 2:
        pinned_[frame] = !pinned_[frame];
        return;
      case 3:  // discarded
        if (places_[frame] == Place::kHeld) leave_offer(frame, true);
        return;
      case 4:
      case 5:
        if (places_[frame] == Place::kOffered) return leave_offer(frame, rng.below(2) == 0);
        if (places_[frame] == Place::kHeld) return;
        return insert(frame, BlockId(rng.below(kBlocks)));
      default:
        referenced_[frame] = true;
        policy_->on_touch(frame);
        reference_->touch(frame);
    }
  }

  std::unique_ptr<Policy> policy_ = std::move(*make_policy(GetParam(), kFrames));
  std::unique_ptr<Reference> reference_ = reference_of(GetParam(), kFrames);
  std::vector<Place> places_ = std::vector<Place>(kFrames);
  std::vector<BlockId> blocks_ = std::vector<BlockId>(kFrames);
  std::vector<bool> pinned_ = std::vector<bool>(kFrames);
  std::vector<bool> referenced_ = std::vector<bool>(kFrames);
};

TEST_P(AgainstReference, random_operations_give_the_same_candidates) {
  Rng rng(1);
  for (int i = 0; i < 100'000 && !HasFatalFailure(); ++i) {
    step(rng);
    std::vector<uint8_t> may_be_offered;
    for (Place place : places_) may_be_offered.push_back(place == Place::kHeld);
    policy_->check_invariants(may_be_offered);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, AgainstReference, testing::Values("clock", "clock2q+", "lru", "s3-fifo"),
                         [](const auto& tested) { return policy_case_name(tested.param); });

TEST(MakePolicy, an_unknown_name_is_an_error_that_lists_the_known) {
  auto made = make_policy("lifo", 10);
  ASSERT_FALSE(made.is_ok());
  EXPECT_NE(made.status().message().find("clock, clock2q+, lru, s3-fifo"), std::string::npos);
}

}  // namespace
}  // namespace spw::cache
