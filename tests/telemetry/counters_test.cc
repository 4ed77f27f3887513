#include "telemetry/counters.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

namespace spw::telemetry {
namespace {

TEST(Counters, totals_sum_live_and_ended_threads) {
  const uint64_t before = total(read_totals(), Counter::evictions);
  count(Counter::evictions, 5);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([] { count(Counter::evictions, 10); });
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(total(read_totals(), Counter::evictions) - before, 5u + 3 * 4 * 10);
}

TEST(Counters, a_counter_is_named_as_in_its_list) {
  EXPECT_STREQ(counter_infos()[static_cast<size_t>(Counter::bytes_dirtied)].name, "bytes_dirtied");
  for (const CounterInfo& info : counter_infos())
    EXPECT_GT(std::string_view(info.text).size(), 10u) << info.name;
}

TEST(Counters, totals_never_go_down_while_threads_count) {
  std::atomic<bool> stop{false};
  std::thread counting([&] {
    while (!stop.load()) count(Counter::fills);
  });
  uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t now = total(read_totals(), Counter::fills);
    EXPECT_GE(now, last);
    last = now;
  }
  stop.store(true);
  counting.join();
}

}  // namespace
}  // namespace spw::telemetry
