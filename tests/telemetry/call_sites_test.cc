#include "telemetry/call_sites.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>

namespace spw::telemetry {
namespace {

uint64_t count_of(const CallSites& sites, uintptr_t instruction) {
  uint64_t count = 0;
  for (const CallSites::Site& site : sites.all()) count += site.instruction == instruction ? site.count : 0;
  return count;
}

TEST(CallSites, counts_each_instruction) {
  auto sites = std::make_unique<CallSites>();
  for (int i = 0; i < 3; ++i) sites->note(0x1000);
  sites->note(0x1001);
  EXPECT_EQ(count_of(*sites, 0x1000), 3u);
  EXPECT_EQ(count_of(*sites, 0x1001), 1u);
  EXPECT_EQ(sites->all().size(), 2u);
}

TEST(CallSites, counts_together_what_is_too_much) {
  auto sites = std::make_unique<CallSites>();
  for (uintptr_t i = 1; i <= CallSites::kSitesMax + 10; ++i) sites->note(i * 16);
  EXPECT_EQ(sites->all().size(), CallSites::kSitesMax + 1);
  EXPECT_EQ(count_of(*sites, 0), 10u);
}

TEST(CallSites, threads_lose_no_count_and_share_slots) {
  auto sites = std::make_unique<CallSites>();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (uintptr_t i = 0; i < 20'000; ++i) sites->note(1 + i % 100);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sites->all().size(), 100u);
  for (uintptr_t i = 1; i <= 100; ++i) EXPECT_EQ(count_of(*sites, i), 4u * 200);
}

}  // namespace
}  // namespace spw::telemetry
