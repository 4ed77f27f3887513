// Balanced stores of several tiers, and of members that fail: which chunks move, and where to.
#include "balanced_fixture.h"

namespace spw::store {
namespace {

class TiersTest : public BalancedFixture {};

// ---- A member that fails ----

TEST_F(TiersTest, what_a_member_fails_to_write_goes_to_another_one) {
  create({20, 20});
  ASSERT_TRUE(faults_[0].add("write:1+:EIO"));
  for (uint64_t chunk = 0; chunk < 20; ++chunk) ASSERT_EQ(write(chunk), 0) << chunk;
  EXPECT_EQ(store_->chunks_of(0), 0u);
  EXPECT_EQ(write(20), EIO) << "the other one is full, so this is what there is to say";
  for (uint64_t chunk = 0; chunk < 20; ++chunk) EXPECT_TRUE(is_as_written(chunk)) << chunk;
}

TEST_F(TiersTest, a_chunk_that_cannot_be_written_again_moves_away) {
  create({20, 40});
  for (uint64_t chunk = 0; chunk < 20; ++chunk) ASSERT_EQ(write(chunk), 0) << chunk;
  const uint64_t there = store_->chunks_of(0);
  ASSERT_GT(there, 0u);
  ASSERT_TRUE(faults_[0].add("write:1+:EROFS"));
  unsigned failed = 0;
  for (uint64_t chunk = 0; chunk < 20; ++chunk) {
    const Buffer one(kUnit, chunk + 1);
    const auto rewrites = [&] { return perform(transfer_of(Op::kWrite, chunk * kChunk, one)) == 0; };
    if (rewrites()) continue;
    ++failed;
    EXPECT_TRUE(comes(rewrites)) << chunk;
  }
  EXPECT_EQ(failed, there) << "each was tried where it was";
  EXPECT_EQ(store_->chunks_of(0), 0u);
  for (uint64_t chunk = 0; chunk < 20; ++chunk) EXPECT_TRUE(is_as_written(chunk)) << chunk;
}

TEST_F(TiersTest, what_can_be_neither_written_nor_read_stays_an_error) {
  create({20, 40});
  for (uint64_t chunk = 0; chunk < 20; ++chunk) ASSERT_EQ(write(chunk), 0) << chunk;
  const uint64_t there = store_->chunks_of(0);
  ASSERT_TRUE(faults_[0].add("write:1+:EIO,read:1+:EIO"));
  unsigned failed = 0;
  for (unsigned round = 0; round < 3; ++round) {
    for (uint64_t chunk = 0; chunk < 20; ++chunk) failed += write(chunk) == EIO;
    platform::sleep_ns(20'000'000);
  }
  EXPECT_EQ(failed, 3 * there);
  EXPECT_EQ(store_->chunks_of(0), there);
  faults_[0].clear();
  for (uint64_t chunk = 0; chunk < 20; ++chunk) EXPECT_TRUE(is_as_written(chunk)) << chunk;
}

TEST_F(TiersTest, a_member_that_fails_for_a_while_loses_no_slots_for_it) {
  create({20, 4});
  for (uint64_t chunk = 0; chunk < 8; ++chunk) ASSERT_EQ(write(chunk), 0) << chunk;
  ASSERT_EQ(store_->chunks_of(1), 4u);
  const uint64_t there = store_->chunks_of(0);
  ASSERT_TRUE(faults_[0].add("write:1+:EIO,discard:1+:EIO"));
  for (unsigned round = 0; round < 3; ++round)
    for (uint64_t chunk = 8; chunk < 12; ++chunk) EXPECT_EQ(write(chunk), EIO) << chunk;
  faults_[0].clear();
  EXPECT_LE(store_->chunks_of(0), there + 4);
  for (uint64_t chunk = 8; chunk < 24 - 4; ++chunk) EXPECT_EQ(write(chunk), 0) << chunk;
  for (uint64_t chunk = 0; chunk < 24 - 4; ++chunk) EXPECT_TRUE(is_as_written(chunk)) << chunk;
}

// ---- Tiers ----

TEST_F(TiersTest, the_first_tier_is_filled_before_the_next) {
  create({10, 10, 30}, {0, 0, 1});
  for (uint64_t chunk = 0; chunk < 20; ++chunk) ASSERT_EQ(write(chunk), 0) << chunk;
  EXPECT_EQ(store_->chunks_of(2), 0u);
  for (uint64_t chunk = 20; chunk < 50; ++chunk) ASSERT_EQ(write(chunk), 0) << chunk;
  EXPECT_EQ(
      store_->describe(),
      "striped over 3 in chunks of 16.0 KiB, in order: memory:160.0 KiB 20 %, memory:160.0 KiB 20 %, then "
      "memory:480.0 KiB 60 %");
  for (uint64_t chunk = 0; chunk < 50; ++chunk) EXPECT_TRUE(is_as_written(chunk)) << chunk;
}

TEST_F(TiersTest, a_chunk_that_is_used_moves_up_where_there_is_room) {
  create({10, 40}, {0, 1});
  for (uint64_t chunk = 0; chunk < 30; ++chunk) ASSERT_EQ(write(chunk), 0) << chunk;
  ASSERT_EQ(store_->chunks_of(0), 10u);
  ASSERT_EQ(perform(discard_of(0, 3 * kChunk)), 0);
  use(25, ChunkMover::kHot + 2 * ChunkMover::kLookAgain);
  EXPECT_TRUE(comes([&] { return store_->moved_up() == 1; }));
  EXPECT_EQ(store_->chunks_of(0), 8u);
  EXPECT_EQ(store_->chunks_of(1), 19u);
  for (uint64_t chunk = 0; chunk < 30; ++chunk)
    EXPECT_TRUE(chunk < 3 ? is_zero(chunk) : is_as_written(chunk)) << chunk;
}

TEST_F(TiersTest, it_takes_the_place_of_one_that_is_not_if_that_saves_time) {
  create({10, 40}, {0, 1});
  ASSERT_TRUE(faults_[1].add("read:1+:delay:3000"));
  for (uint64_t chunk = 0; chunk < 30; ++chunk) ASSERT_EQ(write(chunk), 0) << chunk;
  use(25, ChunkMover::kHot + 2 * ChunkMover::kLookAgain);
  EXPECT_TRUE(comes([&] { return store_->moved_up() == 1; }));
  EXPECT_EQ(store_->chunks_of(0), 10u);
  EXPECT_EQ(store_->chunks_of(1), 20u);
  for (uint64_t chunk = 0; chunk < 30; ++chunk) EXPECT_TRUE(is_as_written(chunk)) << chunk;
}

TEST_F(TiersTest, what_is_read_once_from_end_to_end_moves_nothing) {
  create({10, 40}, {0, 1});
  ASSERT_TRUE(faults_[1].add("read:1+:delay:100"));
  for (uint64_t chunk = 0; chunk < 30; ++chunk) ASSERT_EQ(write(chunk), 0) << chunk;
  Buffer read(kUnit);
  for (uint64_t at = 0; at < 30 * kChunk; at += 512)
    ASSERT_EQ(perform(transfer_of(Op::kRead, at / kUnit * kUnit, read)), 0);
  platform::sleep_ns(50'000'000);
  EXPECT_EQ(store_->moved_up(), 0u);
}

TEST_F(TiersTest, after_a_fork_that_shares_it_nothing_moves) {
  create({10, 40}, {0, 1});
  for (uint64_t chunk = 0; chunk < 30; ++chunk) ASSERT_EQ(write(chunk), 0) << chunk;
  store_->lock_for_fork();
  store_->unlock_after_fork();
  ASSERT_EQ(perform(discard_of(0, 3 * kChunk)), 0);
  use(25, ChunkMover::kHot + 2 * ChunkMover::kLookAgain);
  EXPECT_EQ(store_->moved_up(), 0u);
  EXPECT_TRUE(is_as_written(25));
}

}  // namespace
}  // namespace spw::store
