// The public API over a real runtime whose cap is a quarter of the data, in a program that is not recompiled: what it
// stores through a pinned window it must find again through the address itself, which faults as foreign code does.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "spillway/spillway.h"

extern "C" void* __spw_malloc_v1(size_t bytes);

namespace {

constexpr size_t kBytes = size_t{32} << 20;
constexpr size_t kBlock = 4096;

class ApiTest : public testing::Test {
 protected:
  void SetUp() override {
    data_ = static_cast<char*>(__spw_malloc_v1(kBytes));
    ASSERT_NE(data_, nullptr);
  }
  void TearDown() override { std::free(data_); }

  // Fills [begin, end) of the data through windows: word w is w * factor.
  void fill(size_t begin, size_t end, uint64_t factor) {
    while (begin < end) {
      spw_pinned pin;
      ASSERT_EQ(spw_pin(data_ + begin, end - begin, SPW_WRITE, &pin), 0);
      for (size_t at = 0; at < pin.bytes; at += 8) {
        uint64_t value = (begin + at) / 8 * factor;
        std::memcpy(static_cast<char*>(pin.data) + at, &value, 8);
      }
      begin += pin.bytes;
      ASSERT_EQ(spw_unpin(&pin), 0);
    }
  }

  char* data_ = nullptr;
};

TEST_F(ApiTest, what_was_stored_through_windows_is_there_on_four_times_the_memory) {
  fill(0, kBytes, 3);
  for (size_t begin = 0; begin < kBytes; begin += kBlock) {
    spw_pinned pin;
    ASSERT_EQ(spw_pin(data_ + begin, 8, SPW_READ, &pin), 0);
    uint64_t value;
    std::memcpy(&value, pin.data, 8);
    ASSERT_EQ(value, begin / 8 * 3);
    ASSERT_EQ(spw_unpin(&pin), 0);
  }
}

TEST_F(ApiTest, code_that_was_not_recompiled_sees_and_changes_the_same_bytes) {
  fill(0, kBytes, 5);
  volatile uint64_t* words = reinterpret_cast<uint64_t*>(data_);
  for (size_t w = 0; w < kBytes / 8; w += 3001) ASSERT_EQ(words[w], w * 5);
  for (size_t w = 0; w < kBytes / 8; w += 3001) words[w] = w + 1;
  for (size_t w = 0; w < kBytes / 8; w += 3001) {
    spw_pinned pin;
    ASSERT_EQ(spw_pin(data_ + w * 8, 8, SPW_READ, &pin), 0);
    uint64_t value;
    std::memcpy(&value, pin.data, 8);
    ASSERT_EQ(value, w + 1);
    ASSERT_EQ(spw_unpin(&pin), 0);
  }
}

TEST_F(ApiTest, threads_that_fault_on_the_same_blocks_agree) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      volatile uint64_t* words = reinterpret_cast<uint64_t*>(data_);
      for (size_t w = t; w < kBytes / 8; w += 8 * 257) words[w] = w + t;
    });
  }
  for (std::thread& thread : threads) thread.join();
  volatile uint64_t* words = reinterpret_cast<uint64_t*>(data_);
  for (uint64_t t = 0; t < 8; ++t)
    for (size_t w = t; w < kBytes / 8; w += 8 * 257) ASSERT_EQ(words[w], w + t);
}

TEST_F(ApiTest, bad_arguments_are_refused) {
  spw_pinned pin;
  char plain[8] = {};
  EXPECT_EQ(spw_pin(plain, 8, SPW_READ, &pin), -EINVAL);
  EXPECT_EQ(spw_pin(data_, 0, SPW_READ, &pin), -EINVAL);
  EXPECT_EQ(spw_pin(data_, 8, static_cast<spw_access>(9), &pin), -EINVAL);
  EXPECT_EQ(spw_pin(data_, 8, SPW_READ, nullptr), -EINVAL);
  EXPECT_EQ(spw_unpin(nullptr), -EINVAL);
  EXPECT_EQ(spw_is_managed(plain), 0);
  EXPECT_EQ(spw_is_managed(data_), 1);
  EXPECT_EQ(spw_prefetch(plain, 100), 0);
}

TEST_F(ApiTest, one_pin_too_many_is_refused_and_a_pin_outlives_any_traffic) {
  spw_pinned pins[SPW_PINS_PER_THREAD];
  for (int i = 0; i < SPW_PINS_PER_THREAD; ++i)
    ASSERT_EQ(spw_pin(data_ + static_cast<size_t>(i) * kBlock, 8, SPW_WRITE, &pins[i]), 0);
  spw_pinned extra;
  EXPECT_EQ(spw_pin(data_ + 100 * kBlock, 8, SPW_READ, &extra), -EMFILE);
  ASSERT_EQ(spw_unpin(&pins[3]), 0);
  for (int i = 0; i < 3; ++i) std::memset(pins[i].data, i + 1, 8);
  fill(kBytes / 2, kBytes, 7);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(static_cast<char*>(pins[i].data)[5], i + 1);
    EXPECT_EQ(spw_unpin(&pins[i]), 0);
  }
}

TEST_F(ApiTest, a_forked_child_pins_its_parents_memory_and_none_of_its_pins) {
  spw_pinned before;
  for (size_t at = 0; at < kBytes; at += kBlock) {
    ASSERT_EQ(spw_pin(data_ + at, 8, SPW_WRITE, &before), 0);
    static_cast<char*>(before.data)[0] = 3;
    ASSERT_EQ(spw_unpin(&before), 0);
  }
  ASSERT_EQ(spw_pin(data_, 8, SPW_READ, &before), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (spw_unpin(&before) == 0) _exit(1);
    for (size_t at = 0; at < kBytes; at += kBlock) {
      spw_pinned pin;
      if (spw_pin(data_ + at, 8, SPW_WRITE, &pin) != 0) _exit(2);
      auto* const bytes = static_cast<char*>(pin.data);
      if (bytes[0] != 3) _exit(3);
      bytes[0] = 4;
      if (spw_unpin(&pin) != 0) _exit(4);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(spw_unpin(&before), 0);
  for (size_t at = 0; at < kBytes; at += kBlock) {
    spw_pinned pin;
    ASSERT_EQ(spw_pin(data_ + at, 8, SPW_READ, &pin), 0);
    EXPECT_EQ(static_cast<char*>(pin.data)[0], 3);
    EXPECT_EQ(spw_unpin(&pin), 0);
  }
}

}  // namespace
