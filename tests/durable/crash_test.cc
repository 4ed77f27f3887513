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
uint64_t crashes() { return from_environment("SPW_CRASHES", 24000); }
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

// What it writes at first are words one by one: those that are there already stay.
TEST_P(CrashTest, every_moment_of_the_first_opening) {
  for (uint64_t moment = 1, went = 1; went != 0; ++moment) {
    SimulatedMemory memory(GetParam().leaks, moment, small_layout(4), 4 * kChunkBytes);
    memory.crash_at(moment);
    went = 0;
    for (unsigned opened = 0; opened < 2; ++opened) {
      try {
        auto region = PersistentRegion::attach(memory.view(), memory, memory, combiner());
        ASSERT_TRUE(region) << "moment " << moment << ": " << region.status().message();
      } catch (const Crash&) {
        went = 1;
        memory.lose_power();
        ASSERT_TRUE(check_region(memory.view(), GetParam().leaks).problems.empty()) << "moment " << moment;
      }
    }
    memory.crash_at(0);
    const CheckReport report = check_region(memory.view(), GetParam().leaks);
    ASSERT_TRUE(report.problems.empty()) << report.problems.front();
    ASSERT_TRUE(went != 0 || moment > 2) << "no moment was one of the opening";
  }
}

// Each chunk of the file has a word that was written, and behind its end there are words of free chunks or none.
TEST_P(CrashTest, every_moment_of_growing) {
  for (uint64_t moment = 1, went = 1; went != 0; ++moment) {
    SimulatedMemory memory(GetParam().leaks, moment, small_layout(4), 2 * kChunkBytes, 20 * kChunkBytes);
    went = 0;
    auto regions = std::make_unique<Regions>();
    Thread thread;
    auto region = PersistentRegion::attach(memory.view(), memory, memory, combiner());
    ASSERT_TRUE(region && regions->add(std::move(*region)));
    memory.crash_at(moment);
    try {
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(regions->allocate(thread, 0, 80'000));
    } catch (const Crash&) {
      went = 1;
    }
    regions.reset();
    memory.lose_power();
    const RegionView& view = memory.view();
    const CheckReport report = check_region(view, GetParam().leaks);
    ASSERT_TRUE(report.problems.empty()) << "moment " << moment << ": " << report.problems.front();
    ASSERT_TRUE(report.chunks == 2 || report.chunks > 16) << report.chunks;
    const uint64_t words = (view.header().heap_offset - view.header().chunks_offset) / sizeof(uint64_t);
    for (uint64_t chunk = view.chunk_count(); chunk < words; ++chunk) {
      const uint64_t word = view.chunks()[chunk];
      ASSERT_TRUE(word == 0 || word == ChunkWord{}.word(chunk_place(view.header(), chunk))) << chunk;
    }
    ASSERT_TRUE(PersistentRegion::attach(view, memory, memory, combiner())) << "moment " << moment;
  }
}

TEST_P(CrashTest, random_moments_of_long_programs) {
  constexpr uint64_t kCrashesEach = 500;  // then a new region
  constexpr uint64_t kAllForRare =
      3000;  // so many have a section that is complete only, which is one in some hundreds
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
  if (all >= kAllForRare) {
    EXPECT_GT(kept, 0u);
  }
  EXPECT_GT(dependent, all / 4);
  std::printf("%s: %lu crashes, %lu sections undone, %lu kept that were complete only\n", GetParam().name,
              static_cast<unsigned long>(all), static_cast<unsigned long>(undone),
              static_cast<unsigned long>(kept));
}

INSTANTIATE_TEST_SUITE_P(Ways, CrashTest, testing::ValuesIn(kWays),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace spw::durable
