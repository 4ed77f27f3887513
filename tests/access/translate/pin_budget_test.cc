#include "access/translate/pin_budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "../../thread_states.h"

namespace spw::access {
namespace {

TEST(PinBudget, charges_never_exceed_what_a_partition_can_spare) {
  for (uint32_t frames : {64u, 300u, 1024u, 16384u, 1u << 20}) {
    PinBudget budget(frames, 4, 2, 0, 0);
    uint32_t threads = 0;
    std::vector<SatcShape> shapes;
    while (true) {
      Result<SatcShape> shape = budget.acquire();
      if (!shape) break;
      EXPECT_GE(shape->entries(), kMinEntries);
      shapes.push_back(*shape);
      ASSERT_LE(budget.charged(), budget.capacity());
      ASSERT_LT(budget.capacity(), frames);
      if (++threads == 5000) break;
    }
    EXPECT_GE(threads, 2u) << frames;
    for (const SatcShape& shape : shapes) budget.release(shape);
    EXPECT_EQ(budget.charged(), 0u);
  }
}

TEST(PinBudget, the_first_thread_gets_half_and_expected_ones_share_the_rest) {
  PinBudget budget(65536, 1, 3);
  SatcShape first = *budget.acquire();
  SatcShape second = *budget.acquire();
  SatcShape third = *budget.acquire();
  SatcShape late = *budget.acquire();
  EXPECT_GT(first.entries(), 65536u * 2 / 5);
  EXPECT_EQ(second.entries(), third.entries());
  EXPECT_LT(late.entries(), third.entries());
}

TEST(PinBudget, growing_leaves_half_a_fair_share_to_each_thread_that_is_still_expected) {
  PinBudget budget(65536, 1, 2);
  SatcShape first = *budget.acquire();
  SatcShape grown = budget.grow(first);
  EXPECT_GT(grown.entries(), first.entries() * 5 / 4);
  EXPECT_LE(budget.charged(), budget.capacity());
  EXPECT_EQ(budget.grow(grown).entries(), grown.entries());
  SatcShape second = *budget.acquire();
  EXPECT_GT(second.entries(), first.entries() / 3);
  budget.release(grown);
  EXPECT_GT(budget.grow(second).entries(), second.entries());
}

TEST(PinBudget, handlers_are_charged_little_and_count_as_no_thread) {
  PinBudget budget(65536, 1, 3), alike(65536, 1, 3);
  const SatcShape of_handlers = *budget.acquire(PinBudget::For::kHandlers);
  EXPECT_EQ(of_handlers.charge(), kMinEntries + kRingPins);
  EXPECT_EQ(budget.charged(), of_handlers.charge());
  EXPECT_EQ(budget.acquire()->entries(), alike.acquire()->entries());
  const uint32_t charged = budget.charged();
  budget.release(of_handlers, PinBudget::For::kHandlers);
  EXPECT_EQ(budget.charged(), charged - of_handlers.charge());
}

TEST(PinBudget, a_small_cap_still_serves_many_threads) {
  PinBudget budget(2000, 1, 2);
  for (int i = 0; i < 32; ++i) ASSERT_TRUE(budget.acquire().is_ok()) << i;
  PinBudget of_16_mib(3000, 1, 3, 128);
  for (int i = 0; i < 65; ++i) ASSERT_TRUE(of_16_mib.acquire().is_ok()) << i;
}

TEST(PinBudget, a_thread_too_many_waits_for_one_to_end) {
  PinBudget budget(64, 1, 1);
  std::vector<SatcShape> shapes;
  while (budget.capacity() - budget.charged() >= kMinEntries + kRingPins) shapes.push_back(*budget.acquire());
  std::thread waiting([&] { EXPECT_TRUE(budget.acquire().is_ok()); });
  tests::wait_until_others_sleep();
  budget.release(shapes.back());
  waiting.join();
}

TEST(PinBudget, a_cap_too_small_for_the_threads_is_said) {
  PinBudget budget(64, 1, 1, 0, 1'000'000);
  Status last;
  for (int i = 0; i < 64 && last.is_ok(); ++i) last = budget.acquire().status();
  EXPECT_EQ(last.error(), EINVAL);
  EXPECT_NE(last.message().find("--memory"), std::string::npos);
}

}  // namespace
}  // namespace spw::access
