#include "cache/eviction/policy.h"

#include <gtest/gtest.h>

#include <vector>

namespace spw::cache {
namespace {

class Frames final : public FrameProbe {
 public:
  explicit Frames(size_t count) : referenced(count), busy(count) {}
  Verdict probe(uint32_t frame) override {
    ++looks;
    if (busy[frame]) return Verdict::kBusy;
    if (!referenced[frame]) return Verdict::kEvictable;
    referenced[frame] = false;
    return Verdict::kReferenced;
  }
  std::vector<bool> referenced;
  std::vector<bool> busy;
  uint64_t looks = 0;
};

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

TEST(MakePolicy, an_unknown_name_is_an_error_that_lists_the_known) {
  auto made = make_policy("lifo", 10);
  ASSERT_FALSE(made.is_ok());
  EXPECT_NE(made.status().message().find("clock"), std::string::npos);
}

}  // namespace
}  // namespace spw::cache
