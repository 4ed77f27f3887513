// What a hit and a miss of recompiled code do that other processors notice, counted instruction by instruction. Two
// threads miss, each on blocks of its own, and one after the other: a cache line is shared if both lock it. That the
// numbers stay small is what docs/SCALING.md builds on.
#include "counted_steps.h"
#include "loose_blocks_fixture.h"

namespace spw::access {
namespace {

class CountedMisses : public LooseBlocks {
 protected:
  struct Counted {
    uint64_t misses = 0, instructions = 0, atomics = 0, system_calls = 0;
    std::map<uintptr_t, uint64_t> lines;
  };
  static constexpr uint64_t kMisses = 32;

  // Of every eighth block from `first` on, when the frames have loose blocks alone: what goes takes no page along.
  Counted count_misses(uint64_t first) {
    for (uint64_t i = kMisses; i < kMisses + 3 * frames() / 2; ++i) to_load(at(first + 8 * i));
    CountedSteps steps;
    const uint64_t before = counted(Counter::loose_fills);
    for (uint64_t i = 0; i < kMisses; ++i) {
      uintptr_t raw = 0;
      const uintptr_t address = at(first + 8 * i);
      steps.count([&] { raw = to_load(address); });
      EXPECT_EQ(get(raw), at_first(first + 8 * i, 0));
    }
    return {counted(Counter::loose_fills) - before, steps.instructions(), steps.atomics(),
            steps.system_calls().size(), steps.atomics_by_line()};
  }
};

TEST_F(CountedMisses, lock_few_lines_that_others_lock_and_call_the_kernel_for_nothing_but_data) {
  Counted one, other;
  std::thread([&] { one = count_misses(0); }).join();
  std::thread([&] { other = count_misses(1); }).join();
  ASSERT_EQ(one.misses, kMisses);
  ASSERT_EQ(other.misses, kMisses);
  uint64_t shared = 0;
  for (const auto& [line, times] : other.lines)
    if (one.lines.contains(line)) shared += times;
  std::printf("a miss that evicts: %llu instructions, %.2f atomic operations, of them on shared lines %.2f\n",
              static_cast<unsigned long long>(other.instructions / kMisses),
              static_cast<double>(other.atomics) / kMisses, static_cast<double>(shared) / kMisses);
  EXPECT_GE(shared, kMisses) << "who found no lock was not counted";
  EXPECT_LE(shared, 14 * kMisses);
  EXPECT_LE(other.instructions, 5000 * kMisses);
  EXPECT_EQ(other.system_calls, 0u) << "the store is memory, and no page table changes";
}

TEST_F(CountedMisses, hits_on_what_a_thread_holds_lock_nothing) {
  ASSERT_TRUE(is_raw(to_load(at(3))));
  CountedSteps steps;
  for (int i = 0; i < 8; ++i) steps.count([&] { to_load(at(3)); });
  EXPECT_EQ(steps.atomics(), 0u);
  EXPECT_TRUE(steps.system_calls().empty());
  EXPECT_GT(steps.instructions(), 0u);
}

}  // namespace
}  // namespace spw::access
