#include "cache/frame_pool/pool_frames.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/units.h"

namespace spw::cache {
namespace {

constexpr unsigned kShift = 12;
constexpr uint32_t kFrames = 2048;  // 8 MiB

std::unique_ptr<PoolFrames> make_pool(bool huge) {
  return std::move(*PoolFrames::create(kFrames, kShift, huge));
}

std::byte* data(const PoolFrames& pool, uint32_t frame) {
  return pool.placement().pool + (uint64_t{frame} << kShift);
}

void install_zeros(PoolFrames& pool, uint32_t frame) {
  Resident resident{FrameId(frame), BlockId(1)};
  pool.install({&resident, 1}, Contents::kZeros, nullptr, false);
}

TEST(PoolFrames, frames_lie_side_by_side_and_are_aligned) {
  auto pool = make_pool(false);
  EXPECT_FALSE(pool->placement().has_address(BlockId(0)));
  EXPECT_EQ(pool->fill_address({FrameId(5), BlockId(99)}, nullptr, 0), data(*pool, 5));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pool->placement().pool) % (2 * kMiB), 0u);
}

TEST(PoolFrames, zeros_replace_what_a_frame_held) {
  auto pool = make_pool(false);
  Resident resident{FrameId(7), BlockId(1)};
  for (int round = 0; round < 2; ++round) {
    pool->install({&resident, 1}, Contents::kZeros, nullptr, false);
    for (size_t i = 0; i < 4096; ++i) ASSERT_EQ(data(*pool, 7)[i], std::byte{0});
    std::memset(data(*pool, 7), 0xAB, 4096);
  }
}

TEST(PoolFrames, a_failed_fill_does_not_count_as_zeros) {
  auto pool = make_pool(false);
  Resident resident{FrameId(7), BlockId(1)};
  std::memset(pool->fill_address(resident, nullptr, 0), 0xAB, 4096);  // and then the read failed
  pool->install({&resident, 1}, Contents::kZeros, nullptr, false);
  for (size_t i = 0; i < 4096; ++i) ASSERT_EQ(data(*pool, 7)[i], std::byte{0});
}

TEST(PoolFrames, runs_of_small_blocks_are_read_into_staging_and_copied) {
  auto pool = std::move(*PoolFrames::create(kFrames, kShift, false, 1));
  using Kind = FrameSource::Staging;
  using Use = FrameSource::StagingUse;
  EXPECT_EQ(pool->staging_use(BlockId(1), 1), Use::kNone);
  EXPECT_EQ(pool->staging_use(BlockId(1), 2), Use::kWanted);
  std::byte* const staging = pool->take_staging(Kind::kRun);
  ASSERT_NE(staging, nullptr);
  EXPECT_EQ(pool->take_staging(Kind::kRun), nullptr) << "there is one";
  const Resident run[] = {{FrameId(9), BlockId(1)}, {FrameId(3), BlockId(2)}};
  for (size_t i = 0; i < 2; ++i)
    std::memset(pool->fill_address(run[i], staging, i), static_cast<int>(i + 1), 4096);
  pool->install(run, Contents::kFilled, staging, false);
  for (size_t i = 0; i < 4096; ++i) {
    ASSERT_EQ(data(*pool, 9)[i], std::byte{1});
    ASSERT_EQ(data(*pool, 3)[i], std::byte{2});
  }
  pool->give_back(Kind::kRun, staging);
  EXPECT_EQ(pool->take_staging(Kind::kRun), staging);
  pool->give_back(Kind::kRun, staging);
}

TEST(PoolFrames, large_blocks_are_read_in_place_and_so_is_everything_without_staging) {
  using Use = FrameSource::StagingUse;
  EXPECT_EQ(make_pool(false)->staging_use(BlockId(1), 16), Use::kNone);
  auto large = std::move(*PoolFrames::create(64, kStagedShiftEnd, false, 4));
  EXPECT_EQ(large->staging_use(BlockId(1), 4), Use::kNone);
}

TEST(PoolFrames, memory_comes_with_use) {
  auto pool = make_pool(false);
  EXPECT_EQ(pool->used_pieces(), 0u);
  install_zeros(*pool, 0);
  install_zeros(*pool, 511);
  EXPECT_EQ(pool->used_pieces(), 1u);
  install_zeros(*pool, 512);
  EXPECT_EQ(pool->used_pieces(), 2u);
  EXPECT_EQ(pool->huge_pieces(), 0u);
}

TEST(PoolFrames, pieces_become_huge_pages_where_the_kernel_can) {
  auto pool = make_pool(true);
  install_zeros(*pool, 300);
  if (pool->huge_pieces() == 0) GTEST_SKIP() << "this kernel makes no huge pages of a memory file";
  EXPECT_EQ(pool->huge_pieces(), 1u);
}

}  // namespace
}  // namespace spw::cache
