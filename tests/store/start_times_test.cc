#include "store/engine/start_times.h"

#include <gtest/gtest.h>

namespace spw::store {
namespace {

constexpr uint64_t kPage = StartTimes::kPageBytes;

// So many submissions of four steps of a page each.
void submit(StartTimes& times, unsigned count, uint64_t step_ns) {
  for (unsigned i = 0; i < count; ++i) times.note(4, 4 * kPage, 4 * step_ns);
}

unsigned handed_on(StartTimes& times, unsigned count) {
  unsigned handed = 0;
  for (unsigned i = 0; i < count; ++i) handed += times.hands_on();
  return handed;
}

TEST(StartTimesTest, a_queue_is_left_to_its_submitters) {
  StartTimes times;
  submit(times, 1000, 4'000);
  EXPECT_EQ(handed_on(times, 100), 0u);
}

TEST(StartTimesTest, a_device_that_works_in_the_submitters_time_gets_threads_but_for_samples) {
  StartTimes times;
  submit(times, StartTimes::kSlowScore - 1, 14'000);
  EXPECT_EQ(handed_on(times, 100), 0u);
  submit(times, 1, 14'000);
  EXPECT_EQ(handed_on(times, 10 * StartTimes::kSampleEvery), 10 * (StartTimes::kSampleEvery - 1));
}

TEST(StartTimesTest, large_steps_may_take_longer) {
  StartTimes times;
  for (int i = 0; i < 1000; ++i) times.note(1, 64 * kPage, 35'000);
  EXPECT_EQ(handed_on(times, 10), 0u);
  for (int i = 0; i < 1000; ++i) times.note(1, 64 * kPage, 300'000);
  EXPECT_EQ(handed_on(times, 10), 10u);
}

TEST(StartTimesTest, some_slow_ones_among_fast_ones_change_nothing) {
  StartTimes times;
  for (int i = 0; i < 1000; ++i) submit(times, 1, i % 4 == 0 ? 1'000'000 : 4'000);
  EXPECT_EQ(handed_on(times, 100), 0u);
}

TEST(StartTimesTest, a_device_that_became_fast_is_left_to_its_submitters_again) {
  StartTimes times;
  submit(times, 100, 14'000);
  EXPECT_EQ(handed_on(times, 1), 1u);
  submit(times, StartTimes::kScoreMax, 4'000);
  EXPECT_EQ(handed_on(times, 100), 0u);
}

}  // namespace
}  // namespace spw::store
