// Power that goes at every moment of short programs, and at random ones of long ones. SPW_CRASHES=N: so many crashes in
// all instead of a few thousand (./dev crashes).
#include <cstdlib>

#include "crash_kit.h"

// The runtime is compiled without exceptions: what is on its stack when the power goes is not destroyed.
extern "C" const char* __lsan_default_suppressions() { return "leak:spw::durable::"; }

namespace spw::durable {
namespace {

constexpr unsigned kSteps = 60;

// `./dev nightly` sets both: more crashes than here, and others each night.
uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* wanted = std::getenv(name);
  return wanted == nullptr ? otherwise : std::strtoull(wanted, nullptr, 10);
}
uint64_t crashes() { return from_environment("SPW_CRASHES", 8000); }
uint64_t first_seed() { return from_environment("SPW_CRASHES_SEED", 0); }

struct Way {
  const char* name;
  bool leaks;
  const char* technique;
};
constexpr Way kWays[] = {{"memory_eager", true, "eager"},        {"memory_lazy", true, "lazy"},
                         {"memory_table", true, "table"},        {"memory_adaptive", true, "adaptive"},
                         {"memory_fixed", true, "fixed:2"},      {"blocks_lazy", false, "lazy"},
                         {"blocks_adaptive", false, "adaptive"}, {"blocks_fixed", false, "fixed:1"}};

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SPW_ONE_THREAD_IS_ENOUGH 1
#endif
#endif

class CrashTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
#ifdef SPW_ONE_THREAD_IS_ENOUGH
    GTEST_SKIP() << "all of it runs in one thread, and takes minutes; durable_threads_test looks for races";
#endif
  }
  CombinerOptions combiner() const {
    CombinerOptions defaults;
    defaults.burst_writes = 64;  // so that the size changes under way
    return *parse_technique(GetParam().technique, defaults);
  }
};

TEST_P(CrashTest, every_moment_of_a_short_program) {
  for (uint64_t moment = 1;; ++moment) {
    CrashKit kit(GetParam().leaks, 7, combiner());
    const bool went = kit.run(kSteps, moment);
    ASSERT_FALSE(HasFatalFailure()) << "moment " << moment;
    if (!went) {
      EXPECT_GT(moment, 100u);
      return;
    }
  }
}

TEST_P(CrashTest, random_moments_of_long_programs) {
  constexpr uint64_t kCrashesEach = 500;  // then a new region
  const uint64_t all = crashes() / std::size(kWays);
  uint64_t undone = 0, kept = 0, dependent = 0;
  for (uint64_t seed = first_seed(), done = 0; done < all; ++seed) {
    CrashKit kit(GetParam().leaks, seed, combiner());
    Rng rng(seed);
    for (uint64_t i = 0; i < kCrashesEach && done < all; ++i) {
      done += kit.run(200, 1 + rng.below(900));
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << ", crash " << i;
    }
    undone += kit.undone();
    kept += kit.kept();
    dependent += kit.dependent();
  }
  // That which it is about has happened: sections were undone,
  // complete ones kept, and kept ones had others before them.
  EXPECT_GT(undone, all / 4);
  EXPECT_GT(kept, 0u);
  EXPECT_GT(dependent, all / 4);
  std::printf("%s: %lu crashes, %lu sections undone, %lu kept that were complete only\n", GetParam().name,
              static_cast<unsigned long>(all), static_cast<unsigned long>(undone),
              static_cast<unsigned long>(kept));
}

INSTANTIATE_TEST_SUITE_P(Ways, CrashTest, testing::ValuesIn(kWays),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace spw::durable
