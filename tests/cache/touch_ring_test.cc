#include "cache/partition/touch_ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace spw::cache {
namespace {

template <class Rings>
std::vector<uint32_t> drained(Rings& rings, uint32_t* lost = nullptr) {
  std::vector<uint32_t> frames;
  uint32_t count = rings.drain([&](uint32_t frame) { frames.push_back(frame); });
  if (lost) *lost = count;
  return frames;
}

TEST(TouchRing, notes_come_out_once_and_in_order) {
  TouchRing ring;
  for (uint32_t f : {3u, 1u, 3u}) ring.push(f);
  EXPECT_EQ(drained(ring), (std::vector<uint32_t>{3, 1, 3}));
  EXPECT_TRUE(drained(ring).empty());
}

TEST(TouchRing, the_newest_overwrite_the_oldest) {
  TouchRing ring;
  for (uint32_t f = 0; f < TouchRing::kNotes + 5; ++f) ring.push(f);
  uint32_t lost = 0;
  std::vector<uint32_t> frames = drained(ring, &lost);
  EXPECT_EQ(lost, 5u);
  ASSERT_EQ(frames.size(), TouchRing::kNotes);
  EXPECT_EQ(frames.front(), 5u);
  EXPECT_EQ(frames.back(), TouchRing::kNotes + 4);
}

TEST(TouchRing, asks_for_the_owner_each_time_it_has_filled_by_half) {
  TouchRing ring;
  uint32_t asked = 0;
  for (uint32_t i = 0; i < 10 * TouchRing::kNotes; ++i) asked += ring.push(0);
  EXPECT_EQ(asked, 20u);
}

TEST(TouchRings, drains_all_and_answers_the_bell) {
  TouchRings rings;
  TouchRing rings_of_two[2];
  for (TouchRing& ring : rings_of_two) rings.add(ring);
  rings_of_two[0].push(1);
  rings_of_two[1].push(2);
  rings.ring_bell();
  EXPECT_TRUE(rings.bell_rang());
  EXPECT_EQ(drained(rings), (std::vector<uint32_t>{2, 1}));
  EXPECT_FALSE(rings.bell_rang());
}

// One client notes 1, 2, 3 ... while the owner reads: what comes out grows
// but where a slot was overwritten meanwhile, and the last is never lost.
TEST(TouchRings, a_note_read_while_it_is_overwritten_is_a_newer_one) {
  constexpr uint32_t kPushed = 300'000;
  TouchRings rings;
  TouchRing ring;
  rings.add(ring);
  std::thread client([&] {
    for (uint32_t i = 1; i <= kPushed; ++i) ring.push(i);
  });
  uint64_t seen = 0, lost = 0;
  uint32_t last = 0;
  while (last < kPushed) {
    uint64_t before = seen;
    uint32_t expected_least = static_cast<uint32_t>(seen + lost);
    lost += rings.drain([&](uint32_t frame) {
      ++seen;
      ++expected_least;
      EXPECT_GE(frame, expected_least);
      EXPECT_LE(frame, kPushed);
      last = frame;
    });
    ASSERT_LE(seen - before, TouchRing::kNotes);
  }
  client.join();
  while (!drained(rings).empty()) {
  }
  EXPECT_EQ(last, kPushed);
}

}  // namespace
}  // namespace spw::cache
