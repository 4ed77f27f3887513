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
  EXPECT_FALSE(pool->placement().is_in_place(BlockId(0)));
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
