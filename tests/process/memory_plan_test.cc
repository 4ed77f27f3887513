#include "process/memory_plan.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace spw::process {
namespace {

constexpr uint64_t kRunBytes = 256 * kKiB;  // 64 blocks of 4 KiB

Options with(uint64_t memory_bytes, bool block_is_auto, uint64_t block_bytes = 4 * kKiB) {
  Options options;
  options.memory_bytes = memory_bytes;
  options.block_bytes = block_bytes;
  options.block_is_auto = block_is_auto;
  return options;
}

uint64_t planned_bytes(const MemoryPlan& plan, const Options& options) {
  return plan.frames * (options.block_bytes + kTablesPerFrameBytes) + plan.staging_runs * kRunBytes +
         kFixedBytes;
}

TEST(MemoryPlan, the_translated_engine_stages_runs_where_blocks_come_in_units) {
  const Options options = with(128 * kMiB, true);
  auto plan = plan_memory(options, EngineKind::kTranslated);
  ASSERT_TRUE(plan.is_ok());
  EXPECT_EQ(plan->staging_runs, 128 * kMiB / kRunStagingShare / kRunBytes);
  EXPECT_LE(planned_bytes(*plan, options), options.memory_bytes);
  EXPECT_EQ(plan_memory(with(128 * kMiB, false), EngineKind::kTranslated)->staging_runs, 0u);
  EXPECT_EQ(plan_memory(with(128 * kMiB, false, 64 * kKiB), EngineKind::kTranslated)->staging_runs, 0u);
}

TEST(MemoryPlan, staging_is_of_whole_huge_pages_where_there_is_enough) {
  constexpr uint64_t kTogether = kHugePageBytes / kRunBytes;
  for (uint64_t memory = 64 * kMiB; memory <= kGiB; memory += 8 * kMiB)
    EXPECT_EQ(plan_memory(with(memory, true), EngineKind::kTranslated)->staging_runs % kTogether, 0u)
        << memory;
  EXPECT_EQ(plan_memory(with(16 * kMiB, true), EngineKind::kTranslated)->staging_runs, 2u);
}

TEST(MemoryPlan, staging_makes_no_cap_too_small) {
  for (uint64_t memory = kMiB; memory < 64 * kMiB; memory += kMiB) {
    const Options options = with(memory, true);
    auto plan = plan_memory(options, EngineKind::kTranslated);
    ASSERT_EQ(plan.is_ok(), plan_memory(with(memory, false), EngineKind::kTranslated).is_ok()) << memory;
    if (plan.is_ok()) EXPECT_LE(planned_bytes(*plan, options), memory);
  }
}

TEST(MemoryPlan, files_that_are_buffered_have_staging_whatever_the_blocks) {
  Options options = with(128 * kMiB, false);
  options.buffer = "*.db";
  EXPECT_EQ(plan_memory(options, EngineKind::kTranslated)->staging_runs,
            128 * kMiB / kFileStagingShare / kRunBytes);
}

}  // namespace
}  // namespace spw::process
