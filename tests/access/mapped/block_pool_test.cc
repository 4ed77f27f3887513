#include "access/mapped/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/units.h"
#include "platform/resident_pages.h"

namespace spw::access {
namespace {

constexpr uint32_t kFrames = 1024;
constexpr unsigned kShift = 12;
constexpr uint64_t kBlockBytes = uint64_t{1} << kShift;
constexpr uint64_t kBatchBytes = 64 * kBlockBytes;

std::unique_ptr<BlockPool> make_pool() {
  auto made = BlockPool::create(kFrames, kShift);
  EXPECT_TRUE(made.is_ok()) << made.status().message();
  return std::move(*made);
}

uint64_t resident_bytes(const BlockPool& pool) {
  auto pages = platform::ResidentPages::open();
  EXPECT_TRUE(pages.is_ok());
  auto exists = std::make_unique<bool[]>(kFrames);
  EXPECT_TRUE(pages->read(pool.base(), {exists.get(), kFrames}).is_ok());
  return static_cast<uint64_t>(std::count(exists.get(), exists.get() + kFrames, true)) * kBlockBytes;
}

void use(BlockPool& pool, uint32_t first, uint32_t count) {
  for (uint32_t frame = first; frame < first + count; ++frame)
    std::memset(pool.take(FrameId(frame)).data, 1 + static_cast<int>(frame % 255), kBlockBytes);
}

cache::Resident in_frame(uint32_t frame) { return {FrameId(frame), BlockId(frame)}; }
void give_back(BlockPool& pool, uint32_t frame) {
  const cache::Resident resident = in_frame(frame);
  pool.give_back({&resident, 1});
}
void give_back(BlockPool& pool, uint32_t first, uint32_t count) {
  for (uint32_t frame = first; frame < first + count; ++frame) give_back(pool, frame);
}

// So requests of neighbours stay few pieces, however often their frames change hands.
TEST(BlockPool, frames_that_are_given_back_together_find_their_places_again) {
  const auto pool = make_pool();
  use(*pool, 0, kFrames);
  constexpr uint32_t kTogether = 128;
  std::vector<cache::Resident> residents;
  std::vector<std::byte*> places;
  for (uint32_t frame = 64; frame < 64 + kTogether; ++frame) {
    residents.push_back(in_frame(frame));
    places.push_back(pool->take(FrameId(frame)).data);
  }
  for (int turn = 0; turn < 2; ++turn) {
    pool->give_back(residents);
    for (uint32_t i = 0; i < kTogether; ++i)
      EXPECT_EQ(pool->take(residents[i].frame).data, places[i]) << "turn " << turn << ", frame " << i;
  }
}

// Whatever the order in which frames leave and come.
TEST(BlockPool, frames_side_by_side_have_places_side_by_side) {
  const auto pool = make_pool();
  std::vector<uint32_t> frames(kFrames);
  std::iota(frames.begin(), frames.end(), 0u);
  std::mt19937 random(7);
  for (int turn = 0; turn < 4; ++turn) {
    std::shuffle(frames.begin(), frames.end(), random);
    const auto first = frames.begin(), end = turn == 0 ? frames.end() : first + kFrames / 3;
    for (auto frame = first; frame != end; ++frame)
      ASSERT_EQ(pool->take(FrameId(*frame)).data, pool->base() + *frame * kBlockBytes);
    std::shuffle(first, end, random);
    for (auto frame = first; frame != end; ++frame) give_back(*pool, *frame);
  }
}

// Frames that are fewer than all may be in use, others each time: what is kept goes round among them.
TEST(BlockPool, no_two_frames_have_one_place) {
  const auto pool = make_pool();
  pool->set_limit(kFrames / 2);
  std::vector<uint32_t> frames(kFrames);
  std::iota(frames.begin(), frames.end(), 0u);
  std::mt19937 random(7);
  for (int turn = 0; turn < 16; ++turn) {
    std::shuffle(frames.begin(), frames.end(), random);
    std::set<std::byte*> places;
    for (uint32_t i = 0; i < kFrames / 2; ++i) {
      std::byte* const data = pool->take(FrameId(frames[i])).data;
      *data = std::byte{1};
      places.insert(data);
    }
    ASSERT_EQ(places.size(), kFrames / 2);
    ASSERT_LE(resident_bytes(*pool), kFrames / 2 * kBlockBytes);
    for (uint32_t i = 0; i < kFrames / 2; ++i) give_back(*pool, frames[i]);
  }
}

TEST(BlockPool, every_frame_has_a_place_of_its_own_and_keeps_it) {
  const auto pool = make_pool();
  use(*pool, 0, kFrames);
  for (uint32_t frame = 0; frame < kFrames; ++frame) {
    const BlockPool::Place place = pool->take(FrameId(frame));
    EXPECT_EQ(static_cast<uint8_t>(*place.data), 1 + frame % 255);
    EXPECT_EQ(place.data, pool->base() + pool->places()[frame].load_relaxed() * kBlockBytes);
    EXPECT_FALSE(place.is_zero);
  }
}

TEST(BlockPool, what_was_given_back_is_told_from_what_is_zero) {
  const auto pool = make_pool();
  const BlockPool::Place first = pool->take(FrameId(0));
  EXPECT_TRUE(first.is_zero);
  EXPECT_EQ(first.data[100], std::byte{0});
  first.data[100] = std::byte{7};
  give_back(*pool, 0);
  EXPECT_EQ(pool->places()[0].load_relaxed(), BlockPool::kNoPlace);
  give_back(*pool, 0);  // it has none
  const BlockPool::Place again = pool->take(FrameId(0));
  EXPECT_EQ(again.data, first.data);  // the last one given back
  EXPECT_FALSE(again.is_zero);
}

TEST(BlockPool, memory_is_kept_while_frames_are_free) {
  const auto pool = make_pool();
  EXPECT_EQ(resident_bytes(*pool), 0u);
  use(*pool, 0, kFrames);
  give_back(*pool, 0, kFrames);
  EXPECT_EQ(resident_bytes(*pool), kFrames * kBlockBytes);
  use(*pool, 0, kFrames);
  EXPECT_EQ(resident_bytes(*pool), kFrames * kBlockBytes);
}

TEST(BlockPool, blocks_in_place_take_the_room_of_what_is_kept) {
  const auto pool = make_pool();
  use(*pool, 0, kFrames);
  give_back(*pool, 0, kFrames);
  for (uint32_t frame = 0; frame < kFrames; ++frame) {
    const cache::Resident resident = in_frame(frame);
    pool->note_in_place({&resident, 1});
    pool->note_in_place({&resident, 1});
    ASSERT_LE(resident_bytes(*pool) + (frame + 1) * kBlockBytes, kFrames * kBlockBytes + kBatchBytes);
  }
  EXPECT_EQ(resident_bytes(*pool), 0u);
  give_back(*pool, 0, kFrames);
  for (uint32_t frame = 0; frame < kFrames; ++frame) {
    const BlockPool::Place place = pool->take(FrameId(frame));
    EXPECT_TRUE(place.is_zero);
    EXPECT_EQ(std::count(place.data, place.data + kBlockBytes, std::byte{0}), int64_t{kBlockBytes});
    *place.data = std::byte{1};
  }
}

TEST(BlockPool, places_that_were_empty_take_the_room_of_other_shards) {
  const auto pool = make_pool();
  pool->set_limit(kFrames / 2);
  use(*pool, 0, kFrames / 2);
  for (uint32_t frame = 0; frame < kFrames / 2; frame += 2) give_back(*pool, frame);
  for (uint32_t frame = kFrames / 2 + 1; frame < kFrames; frame += 2) use(*pool, frame, 1);
  EXPECT_LE(resident_bytes(*pool), kFrames / 2 * kBlockBytes);
}

TEST(BlockPool, a_lower_limit_gives_memory_back) {
  const auto pool = make_pool();
  use(*pool, 0, kFrames);
  give_back(*pool, 0, kFrames / 4);
  pool->set_limit(kFrames / 2);
  EXPECT_EQ(resident_bytes(*pool), 3 * kFrames / 4 * kBlockBytes);  // the rest is in use
  give_back(*pool, kFrames / 4, kFrames / 4);
  EXPECT_LE(resident_bytes(*pool), kFrames / 2 * kBlockBytes);
}

TEST(BlockPool, threads_take_and_give_back_different_frames_at_the_same_time) {
  const auto pool = make_pool();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&pool, t] {
      const uint32_t first = t * kFrames / 4;
      for (int round = 0; round < 200; ++round) {
        use(*pool, first, kFrames / 4);
        for (uint32_t frame = first; frame < first + kFrames / 4; ++frame)
          ASSERT_EQ(static_cast<uint8_t>(pool->take(FrameId(frame)).data[round]), 1 + frame % 255);
        give_back(*pool, first, kFrames / 4);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(resident_bytes(*pool), kFrames * kBlockBytes);
}

}  // namespace
}  // namespace spw::access
