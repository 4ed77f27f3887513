// Random operations against a reference model: what each block must read as.
#include <thread>

#include "base/rng.h"
#include "cache_fixture.h"
#include "policies.h"

namespace spw::cache {
namespace {

// The blocks [first, first + count), used by one thread. Between two users lie more blocks than are read ahead.
class User {
 public:
  User(CacheFixture& fixture, Client& client, uint64_t first, uint64_t count, uint64_t seed)
      : f_(fixture), client_(client), first_(first), values_(count), rng_(seed) {}

  void step() {
    uint64_t block = rng_.below(values_.size());
    uint64_t most = std::min<uint64_t>(values_.size() - block, rng_.below(4) == 0 ? 200 : 10);
    uint64_t count = rng_.below(most) + 1;
    switch (rng_.below(16)) {
      case 0:
        return discard(block, count);
      case 1:
        return f_.cache().prefetch(client_, BlockId(first_ + block), count);
      case 2:
        ASSERT_TRUE(f_.cache().sync(client_, BlockId(first_ + block), count));
        return;
      case 3:
        for (uint64_t b = block; b < block + count; ++b) use(b, Access::kRead);
        return;
      case 4:
        for (uint64_t b = block; b < block + count; ++b) use(b, Access::kOverwrite);
        return;
      case 5:
        for (uint64_t b = block + count; b-- > block;) use(b, Access::kWrite);
        return;
      default:
        use(block, rng_.below(2) ? Access::kRead : Access::kWrite);
    }
  }
  void check_all() {
    for (uint64_t b = 0; b < values_.size(); ++b) use(b, Access::kRead);
  }

 private:
  void discard(uint64_t block, uint64_t count) {
    f_.cache().discard(client_, BlockId(first_ + block), count);
    for (uint64_t b = block; b < block + count; ++b) {
      f_.blocks().set_contents(BlockId(first_ + b), false);
      values_[b] = 0;
    }
  }
  void use(uint64_t block, Access access) {
    Pin pin;
    ASSERT_TRUE(f_.cache().pin(client_, BlockId(first_ + block), access, &pin));
    if (access != Access::kOverwrite)
      for (size_t at = 0; at < f_.block_bytes(); at += 512) {
        uint64_t value;
        std::memcpy(&value, pin.data + at, sizeof value);
        ASSERT_EQ(value, values_[block]) << "block " << first_ + block << " byte " << at;
      }
    if (access != Access::kRead) {
      values_[block] = rng_.next();
      for (size_t at = 0; at < f_.block_bytes(); at += 512)
        std::memcpy(pin.data + at, &values_[block], sizeof(uint64_t));
    }
    f_.cache().unpin(client_, pin.frame);
  }

  CacheFixture& f_;
  Client& client_;
  const uint64_t first_;
  std::vector<uint64_t> values_;
  Rng rng_;
};

#if __has_feature(thread_sanitizer)
constexpr bool kLooksForRaces = true;
#else
constexpr bool kLooksForRaces = false;
#endif

struct Case {
  Delegation delegation;
  uint32_t frames;
  unsigned block_shift;
  int threads;
};

class Model : public testing::TestWithParam<std::tuple<Case, const char*>> {};

TEST_P(Model, every_block_reads_as_it_was_written_last) {
  auto [c, policy] = GetParam();
  if (kLooksForRaces && c.threads == 1 && c.delegation == Delegation::kCombining)
    GTEST_SKIP() << "all of it runs in one thread: the thread sanitizer can find nothing";
  Options options = small_cache(c.frames);
  options.block_shift = c.block_shift;
  options.readahead_blocks_max = 64;
  options.delegation = c.delegation;
  options.servers = 2;
  options.policy = policy;
  CacheFixture f(options);
  constexpr uint64_t kBlocksEach = 800, kApart = 2000;
  constexpr int kSteps = 4000 / SPW_SLOWED;
  std::vector<std::thread> threads;
  int steps = kSteps / c.threads;
  for (int t = 0; t < c.threads; ++t)
    threads.emplace_back([&, t] {
      Client* client = *f.cache().open_client();
      User user(f, *client, static_cast<uint64_t>(t) * kApart, kBlocksEach, static_cast<uint64_t>(t) + 1);
      for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) user.step();
      user.check_all();
      f.cache().close_client(client);
    });
  for (std::thread& thread : threads) thread.join();
  f.cache().check_invariants();
}

std::string case_name(const testing::TestParamInfo<Model::ParamType>& info) {
  auto [c, policy] = info.param;
  return std::string(c.delegation == Delegation::kCombining ? "combining_" : "dedicated_") +
         std::to_string(c.frames) + "_frames_shift_" + std::to_string(c.block_shift) + "_" +
         std::to_string(c.threads) + "_threads_" + policy_case_name(policy);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Model,
                         testing::Combine(testing::Values(Case{Delegation::kCombining, 16, 12, 1},
                                                          Case{Delegation::kCombining, 64, 12, 1},
                                                          Case{Delegation::kCombining, 300, 12, 1},
                                                          Case{Delegation::kCombining, 300, 12, 8},
                                                          Case{Delegation::kCombining, 2000, 12, 4},
                                                          Case{Delegation::kCombining, 64, 16, 2},
                                                          Case{Delegation::kDedicated, 64, 12, 1},
                                                          Case{Delegation::kDedicated, 300, 12, 8},
                                                          Case{Delegation::kDedicated, 2000, 12, 4}),
                                          testing::Values("clock", "clock2q+", "lru", "s3-fifo")),
                         case_name);

INSTANTIATE_TEST_SUITE_P(PageSets, Model,
                         testing::Combine(testing::Values(Case{Delegation::kCombining, 16, 12, 1},
                                                          Case{Delegation::kCombining, 64, 12, 1},
                                                          Case{Delegation::kCombining, 300, 12, 8},
                                                          Case{Delegation::kCombining, 2000, 12, 4},
                                                          Case{Delegation::kCombining, 64, 16, 2}),
                                          testing::Values("sa-lru", "sa-lfu", "sa-nrlfu")),
                         case_name);

}  // namespace
}  // namespace spw::cache
