#include "platform/futex.h"

#include <gtest/gtest.h>

#include <thread>

namespace spw::platform {
namespace {

TEST(Futex, wait_returns_at_once_when_the_word_has_changed) {
  Atomic<uint32_t> word(1);
  EXPECT_EQ(futex_wait(word, 0), FutexWait::kReturned);
}

TEST(Futex, wait_times_out) {
  Atomic<uint32_t> word(0);
  uint64_t start = monotonic_ns();
  FutexWait outcome = FutexWait::kReturned;
  while (outcome == FutexWait::kReturned) outcome = futex_wait(word, 0, 2'000'000);
  EXPECT_GE(monotonic_ns() - start, 2'000'000u);
}

TEST(Futex, wake_ends_a_wait) {
  Atomic<uint32_t> word(0);
  std::thread sleeper([&] {
    while (word.load_acquire() == 0) futex_wait(word, 0);
  });
  sleep_ns(1'000'000);
  word.store_release(1);
  futex_wake_all(word);
  sleeper.join();
}

}  // namespace
}  // namespace spw::platform
