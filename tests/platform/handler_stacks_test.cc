#include "platform/handler_stacks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace spw::platform {
namespace {

TEST(HandlerStacks, a_stack_that_is_given_back_is_taken_again) {
  HandlerStacks stacks;
  std::byte* first = stacks.take();
  std::byte* second = stacks.take();
  ASSERT_TRUE(first && second);
  EXPECT_NE(first, second);
  std::memset(first, 1, HandlerStacks::kStackBytes);
  std::memset(second, 2, HandlerStacks::kStackBytes);
  EXPECT_EQ(first[HandlerStacks::kStackBytes - 1], std::byte{1});
  stacks.give_back(second);
  EXPECT_EQ(stacks.take(), second);
  stacks.give_back(first);
  stacks.give_back(second);
}

TEST(HandlerStacksDeathTest, what_grows_below_a_stack_ends_the_process) {
  HandlerStacks stacks;
  volatile std::byte* stack = stacks.take();
  ASSERT_NE(stack, nullptr);
  stack[0] = std::byte{1};
  EXPECT_DEATH(stack[-1] = std::byte{1}, "");
}

TEST(HandlerStacks, more_than_are_pooled_may_be_given_back) {
  HandlerStacks stacks;
  std::set<std::byte*> taken;
  for (size_t i = 0; i < 2 * HandlerStacks::kPooledMax; ++i) taken.insert(stacks.take());
  EXPECT_EQ(taken.size(), 2 * HandlerStacks::kPooledMax);
  for (std::byte* stack : taken) stacks.give_back(stack);
  size_t again = 0;
  for (size_t i = 0; i < HandlerStacks::kPooledMax; ++i) again += taken.count(stacks.take());
  EXPECT_EQ(again, HandlerStacks::kPooledMax);
}

TEST(HandlerStacks, no_two_threads_have_one) {
  constexpr int kThreads = 8, kRounds = 2000;
  HandlerStacks stacks;
  std::atomic<int> shared{0};
  std::vector<std::thread> threads;
  for (int t = 1; t <= kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        auto* mine = reinterpret_cast<volatile int*>(stacks.take());
        mine[0] = t;
        std::this_thread::yield();
        if (mine[0] != t) ++shared;
        stacks.give_back(reinterpret_cast<std::byte*>(const_cast<int*>(mine)));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared, 0);
}

}  // namespace
}  // namespace spw::platform
