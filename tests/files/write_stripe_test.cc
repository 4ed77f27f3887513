#include "files/write_stripe.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace spw::files {
namespace {

constexpr size_t kWords = 64;

// Read and written by several threads, so atomic, but in no order of their own.
struct Words {
  std::array<std::atomic<uint64_t>, kWords> at{};
  void fill(uint64_t with) {
    for (auto& word : at) word.store(with, std::memory_order_relaxed);
  }
};

TEST(WriteStripe, writers_come_one_after_the_other) {
  WriteStripe stripe;
  uint64_t count = 0;
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&] {
      for (int i = 0; i < 50'000; ++i) {
        const Writing writing(stripe);
        ++count;
      }
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(count, 200'000u);
}

TEST(WriteStripe, a_read_that_says_so_saw_no_part_of_a_write) {
  WriteStripe stripe;
  Words words;
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (uint64_t i = 1; i <= 100'000; ++i) {
      const Writing writing(stripe);
      words.fill(i);
    }
    is_over = true;
  });
  uint64_t torn = 0, whole = 0;
  const auto look = [&] {
    uint64_t first = 0, others = 0;
    const bool is_whole = stripe.read([&] {
      first = words.at[0].load(std::memory_order_relaxed);
      for (auto& word : words.at) others += word.load(std::memory_order_relaxed) != first;
    });
    if (!is_whole) return;
    ++whole;
    torn += others != 0;
  };
  while (!is_over) look();
  look();
  writer.join();
  EXPECT_EQ(torn, 0u);
  EXPECT_GT(whole, 0u);
}

TEST(WriteStripe, nothing_is_read_while_a_writer_is_inside) {
  WriteStripe stripe;
  const Writing writing(stripe);
  bool was_called = false;
  EXPECT_FALSE(stripe.read([&] { was_called = true; }));
  EXPECT_FALSE(was_called);
}

TEST(WriteStripe, who_sleeps_is_woken_however_many_they_are) {
  WriteStripe stripe;
  std::atomic<int> inside{0};
  std::vector<std::thread> writers;
  {
    const Writing writing(stripe);
    for (int t = 0; t < 6; ++t)
      writers.emplace_back([&] {
        const Writing theirs(stripe);
        ++inside;
      });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // they go to sleep
    EXPECT_EQ(inside, 0);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(inside, 6);
}

}  // namespace
}  // namespace spw::files
