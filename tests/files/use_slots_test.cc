#include "files/page_index/use_slots.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace spw::files {
namespace {

std::unique_ptr<UseSlots> make_slots(UseSlots::Options options = {}) {
  return std::make_unique<UseSlots>(std::move(*UseSlots::map_memory()), options);
}

TEST(UseSlots, what_was_stamped_is_free_when_nobody_is_inside) {
  auto slots = make_slots();
  const uint64_t stamp = slots->advance();
  EXPECT_LT(stamp, slots->oldest_in_use());
}

TEST(UseSlots, a_reader_holds_what_is_stamped_after_it_entered_and_nothing_before) {
  auto slots = make_slots();
  const uint64_t before = slots->advance();
  {
    UseSlots::Guard inside(*slots);
    const uint64_t after = slots->advance();
    EXPECT_LT(before, slots->oldest_in_use());
    EXPECT_GE(after, slots->oldest_in_use());
  }
  EXPECT_LT(before + 1, slots->oldest_in_use());
}

TEST(UseSlots, guards_nest) {
  auto slots = make_slots();
  std::optional<UseSlots::Guard> outer(*slots);
  const uint64_t stamp = slots->advance();
  {
    UseSlots::Guard inner(*slots);
  }
  EXPECT_GE(stamp, slots->oldest_in_use());
  outer.reset();
  EXPECT_LT(stamp, slots->oldest_in_use());
}

TEST(UseSlots, a_new_thread_takes_over_the_slot_of_one_that_ended) {
  auto slots = make_slots();
  for (int i = 0; i < 50; ++i) std::thread([&] { UseSlots::Guard inside(*slots); }).join();
  EXPECT_EQ(slots->slots_used(), 1u);
}

TEST(UseSlots, threads_beyond_the_slots_share_and_hold_what_they_use_all_the_same) {
  auto slots = make_slots({.slots = 1});
  UseSlots::Guard own(*slots);
  std::atomic<int> step{0};
  std::thread other([&] {
    std::optional<UseSlots::Guard> crowd(*slots);
    UseSlots::Guard nested(*slots);
    step = 1;
    while (step != 2) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  EXPECT_EQ(slots->crowd_size(), 2u);
  const uint64_t stamp = slots->advance();
  EXPECT_GE(stamp, slots->oldest_in_use());
  step = 2;
  other.join();
  EXPECT_EQ(slots->crowd_size(), 0u);
}

TEST(UseSlots, a_thread_that_outlives_an_instance_gets_a_slot_of_the_next_one) {
  for (uint32_t i = 0; i < 3 * UseSlots::kInstancesMax; ++i) {
    auto slots = make_slots();
    UseSlots::Guard inside(*slots);
    EXPECT_EQ(slots->slots_used(), 1u);
    const uint64_t stamp = slots->advance();
    EXPECT_GE(stamp, slots->oldest_in_use());
  }
}

// An object is a number that is not 0 until it is freed.
void free_under_readers(UseSlots::Options options) {
  constexpr int kObjects = 20'000;
  auto slots = make_slots(options);
  std::vector<std::atomic<int>> objects(kObjects);
  for (auto& object : objects) object = 1;
  std::atomic<std::atomic<int>*> link{&objects[0]};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&] {
      while (!stop) {
        UseSlots::Guard inside(*slots);
        std::atomic<int>* object = link.load(std::memory_order_acquire);
        for (int i = 0; i < 4; ++i) wrong += object->load(std::memory_order_relaxed) == 0;
      }
    });
  std::vector<uint64_t> stamps;
  size_t freed = 0;
  for (int i = 1; i < kObjects; ++i) {
    link.store(&objects[i], std::memory_order_release);
    stamps.push_back(slots->advance());
    if (i % 16 != 0) continue;
    const uint64_t oldest = slots->oldest_in_use();
    for (; freed < stamps.size() && stamps[freed] < oldest; ++freed) objects[freed] = 0;
    if (i % 512 == 0) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_LT(stamps.back(), slots->oldest_in_use());
}

TEST(UseSlots, nothing_is_freed_under_a_reader) { free_under_readers({}); }
TEST(UseSlots, nothing_is_freed_under_a_reader_with_full_fences) {
  free_under_readers({.barrier = UseSlots::Barrier::kFullFences});
}
TEST(UseSlots, nothing_is_freed_under_a_crowd) { free_under_readers({.slots = 1}); }

}  // namespace
}  // namespace spw::files
