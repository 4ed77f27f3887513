#include <atomic>
#include <thread>

#include "base/rng.h"
#include "cache_fixture.h"
#include "policies.h"

namespace spw::cache {
namespace {

// A block's bytes while a test runs: a version that only its writer of the moment changes (it holds the block's lock),
// with a sum that tells torn or foreign contents.
struct Stamp {
  uint64_t block;
  uint64_t version;
  uint64_t sum;
  static Stamp of(uint64_t block, uint64_t version) {
    return {block, version, block * 0x9E3779B97F4A7C15u + version * 31};
  }
};

struct Case {
  Delegation delegation;
  uint32_t frames;
  unsigned partitions;
  int threads;
  unsigned readahead;
  bool tuned = false;
  bool buffered_file = false;
};

class Stress : public testing::TestWithParam<std::tuple<Case, const char*>> {};

TEST_P(Stress, every_thread_sees_the_last_version_of_every_block) {
  auto [c, policy] = GetParam();
  Options options = small_cache(c.frames);
  options.partitions = c.partitions;
  options.delegation = c.delegation;
  options.servers = 2;
  options.policy = policy;
  options.readahead_blocks_max = c.readahead;
  options.tunes_fills = c.tuned;
  CacheFixture f(options);
  if (c.buffered_file) f.blocks().be_buffered_file();
  if (c.tuned && !c.buffered_file) f.blocks().be_anonymous();
  const CounterDelta delta;
  constexpr uint64_t kUsed = 2000;
  constexpr int kSteps = 60'000 / SPW_SLOWED;
  std::vector<std::mutex> locks(kUsed);
  std::vector<uint64_t> versions(kUsed);
  std::vector<std::thread> threads;
  const int steps = kSteps / c.threads;
  for (int t = 0; t < c.threads; ++t) {
    threads.emplace_back([&, t] {
      Client* client = *f.cache().open_client();
      Rng rng(static_cast<uint64_t>(t) + 1);
      uint64_t walk = rng.below(kUsed);
      for (int i = 0; i < steps; ++i) {
        const bool goes_on = c.tuned ? i % 4 != 0 : i % 64 < 32;  // tuned: by fours
        if (c.tuned && !goes_on) walk = rng.below(kUsed / 4) * 4;
        const uint64_t block = goes_on || c.tuned ? walk++ % kUsed : rng.below(kUsed);
        std::lock_guard lock(locks[block]);
        bool write = rng.below(3) == 0;
        Pin pin;
        Status status = f.cache().pin(*client, BlockId(block), write ? Access::kWrite : Access::kRead, &pin);
        ASSERT_TRUE(status.is_ok()) << status.message();
        Stamp stamp;
        std::memcpy(&stamp, pin.data + 1024, sizeof stamp);
        Stamp expected = versions[block] == 0 ? Stamp{} : Stamp::of(block, versions[block]);
        ASSERT_EQ(stamp.block, expected.block);
        ASSERT_EQ(stamp.version, expected.version);
        ASSERT_EQ(stamp.sum, expected.sum);
        if (write) {
          stamp = Stamp::of(block, ++versions[block]);
          std::memcpy(pin.data + 1024, &stamp, sizeof stamp);
        }
        f.cache().unpin(*client, pin.frame);
        if (rng.below(5000) == 0) {
          ASSERT_TRUE(f.cache().sync(*client, BlockId(rng.below(kUsed)), rng.below(300) + 1));
        }
      }
      f.cache().close_client(client);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (c.tuned) {
    EXPECT_GT(delta(telemetry::Counter::unit_fills), 0u);
  }
  // Dedicated servers write behind by themselves: with nothing dirty they have nothing to do.
  ASSERT_TRUE(f.cache().sync(f.client(), BlockId(0), kUsed));
  f.cache().check_invariants();
}

std::string case_name(const testing::TestParamInfo<Stress::ParamType>& info) {
  auto [c, policy] = info.param;
  return std::string(c.delegation == Delegation::kCombining ? "combining_" : "dedicated_") +
         std::to_string(c.frames) + "_frames_" + std::to_string(c.partitions) + "_partitions_" +
         std::to_string(c.threads) + "_threads_" + (c.readahead ? "ahead_" : "no_ahead_") +
         (c.tuned ? "tuned_" : "") + (c.buffered_file ? "buffered_file_" : "") + policy_case_name(policy);
}

const auto kPolicies = testing::Values("clock", "clock2q+", "lru", "s3-fifo");

INSTANTIATE_TEST_SUITE_P(Combining, Stress,
                         testing::Combine(testing::Values(Case{Delegation::kCombining, 100, 1, 64, 0},
                                                          Case{Delegation::kCombining, 300, 4, 64, 0},
                                                          Case{Delegation::kCombining, 300, 4, 8, 64},
                                                          Case{Delegation::kCombining, 100, 1, 2, 64},
                                                          Case{Delegation::kCombining, 1000, 8, 64, 32}),
                                          kPolicies),
                         case_name);

INSTANTIATE_TEST_SUITE_P(Tuned, Stress,
                         testing::Combine(testing::Values(Case{Delegation::kCombining, 300, 1, 8, 0, true},
                                                          Case{Delegation::kCombining, 1000, 4, 64, 0, true},
                                                          Case{Delegation::kDedicated, 1000, 4, 8, 0, true}),
                                          testing::Values("clock", "clock2q+", "lru")),
                         case_name);

INSTANTIATE_TEST_SUITE_P(TunedPageSets, Stress,
                         testing::Combine(testing::Values(Case{Delegation::kCombining, 304, 1, 8, 0, true},
                                                          Case{Delegation::kCombining, 1000, 4, 64, 0, true}),
                                          testing::Values("sa-lru", "sa-nrlfu")),
                         case_name);

INSTANTIATE_TEST_SUITE_P(PageSets, Stress,
                         testing::Combine(testing::Values(Case{Delegation::kCombining, 100, 1, 64, 0},
                                                          Case{Delegation::kCombining, 300, 4, 8, 64},
                                                          Case{Delegation::kCombining, 104, 1, 2, 64},
                                                          Case{Delegation::kCombining, 1000, 8, 64, 32}),
                                          testing::Values("sa-lru", "sa-lfu", "sa-nrlfu")),
                         case_name);

INSTANTIATE_TEST_SUITE_P(
    BufferedFile, Stress,
    testing::Combine(testing::Values(Case{Delegation::kCombining, 1024, 1, 8, 0, false, true},
                                     Case{Delegation::kCombining, 1024, 1, 8, 64, false, true},
                                     Case{Delegation::kDedicated, 1024, 1, 8, 0, false, true}),
                     kPolicies),
    case_name);

INSTANTIATE_TEST_SUITE_P(Dedicated, Stress,
                         testing::Combine(testing::Values(Case{Delegation::kDedicated, 100, 1, 64, 0},
                                                          Case{Delegation::kDedicated, 300, 4, 64, 0},
                                                          Case{Delegation::kDedicated, 300, 4, 8, 64},
                                                          Case{Delegation::kDedicated, 100, 1, 2, 64}),
                                          kPolicies),
                         case_name);

}  // namespace
}  // namespace spw::cache
