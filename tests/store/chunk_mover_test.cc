// Moves of chunks beside everything else that goes on with them.
#include "store/balanced/chunk_mover.h"

#include <thread>

#include "store_fixture.h"

namespace spw::store {
namespace {

constexpr uint64_t kChunk = 16 * kKiB, kChunks = 8, kWriters = kChunk / kUnit, kMembers = 3;

class ChunkMoverTest : public ::testing::Test {
 protected:
  // Spill files: a copy beside a write, which is then given up, is the kernel's there.
  void SetUp() override {
    directory_ = make_scratch_directory();
    for (uint64_t member = 0; member < kMembers; ++member) {
      auto store = FileStore::open_spill(directory_, {}, 2 * kChunks * kChunk);
      ASSERT_TRUE(store);
      ASSERT_TRUE(places_.add(std::move(*store), 0));
    }
    ASSERT_TRUE(table_.allocate(kChunks));
    for (uint64_t chunk = 0; chunk < kChunks; ++chunk) assign(chunk);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void assign(uint64_t chunk) {
    std::lock_guard lock(places_.mutex());
    int error = 0;
    const auto place = places_.take({}, &error);
    ASSERT_TRUE(place);
    table_.assign(chunk, ChunkWord::of(place->member, place->slot, true, 1));
    table_.unpin(chunk, true);
  }
  // Of one block of a chunk, as the balanced store does it.
  int perform(Op op, uint64_t chunk, uint64_t from, Buffer& buffer) {
    const auto word = table_.pin(chunk, op == Op::kRead ? ChunkTable::To::kRead : ChunkTable::To::kWrite);
    Request request = transfer_of(op, word->slot() * kChunk + from, buffer);
    const int error = places_.store_of(word->member()).transfer(request).error();
    table_.unpin(chunk, op == Op::kWrite);
    return error;
  }
  void move_all(uint64_t rounds) {
    Rng rng(99);
    for (uint64_t round = 0; round < rounds; ++round) {
      const uint64_t chunk = rng.below(kChunks);
      mover_.move(chunk, {.but = uint32_t{1} << table_.load(chunk).member()});
    }
  }
  uint64_t taken() const {
    uint64_t sum = 0;
    for (uint64_t member = 0; member < kMembers; ++member) sum += places_[member].slots.taken();
    return sum;
  }

  std::string directory_;
  Places places_{kMembers, kChunk};
  ChunkTable table_;
  ChunkMover mover_{places_, table_};
};

TEST_F(ChunkMoverTest, a_block_is_what_was_written_last_while_its_chunk_moves) {
  Atomic<uint64_t> wrong(0);
  Atomic<bool> over(false);
  std::vector<std::thread> writers;
  for (uint64_t writer = 0; writer < kWriters; ++writer)
    writers.emplace_back([&, writer] {
      Rng rng(writer + 1);
      uint64_t stamps[kChunks] = {};
      Buffer buffer(kUnit);
      auto* const words = reinterpret_cast<uint64_t*>(buffer.data());
      for (uint64_t round = 1; !over.load_acquire(); ++round) {
        const uint64_t chunk = rng.below(kChunks);
        if (rng.below(4) == 0) {
          stamps[chunk] = round << 16 | chunk << 8 | writer;
          std::fill_n(words, kUnit / 8, stamps[chunk]);
          wrong.fetch_add_relaxed(perform(Op::kWrite, chunk, writer * kUnit, buffer) != 0);
        }
        wrong.fetch_add_relaxed(perform(Op::kRead, chunk, writer * kUnit, buffer) != 0);
        wrong.fetch_add_relaxed(words[0] != stamps[chunk] || words[kUnit / 8 - 1] != stamps[chunk]);
        if (rng.below(4) == 0) platform::sleep_ns(rng.below(200'000));
      }
    });
  move_all(1000);
  over.store_release(true);
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(wrong.load_relaxed(), 0u);
  EXPECT_GT(mover_.moved(), 30u);
  EXPECT_EQ(taken(), kChunks) << "a slot is lost, or a chunk";
}

TEST_F(ChunkMoverTest, who_writes_in_the_middle_ends_the_move) {
  const auto old = table_.begin_move(0);
  ASSERT_TRUE(old);
  const ChunkWord there = ChunkWord::of(2, 7, true, 0);
  ASSERT_TRUE(table_.pin(0, ChunkTable::To::kRead));
  EXPECT_EQ(table_.end_move(0, there), ChunkTable::Moved::kBusy);
  table_.unpin(0, false);
  ASSERT_TRUE(table_.pin(0, ChunkTable::To::kWrite));
  table_.unpin(0, true);
  EXPECT_EQ(table_.end_move(0, there), ChunkTable::Moved::kChanged);
  table_.give_up_move(0);
  EXPECT_EQ(table_.load(0).slot(), old->slot());
  EXPECT_FALSE(table_.load(0).is_moving());
  ASSERT_TRUE(table_.begin_move(0));
  EXPECT_FALSE(table_.take(0)) << "somebody has to do with it";
  EXPECT_EQ(table_.end_move(0, there), ChunkTable::Moved::kYes);
  EXPECT_EQ(table_.load(0).member(), 2u);
  EXPECT_EQ(table_.load(0).users(), 0u);
}

TEST_F(ChunkMoverTest, what_is_under_way_at_a_fork_is_given_up) {
  const size_t member = table_.load(3).member();
  mover_.lock_for_fork();
  EXPECT_EQ(mover_.move(3, {.but = uint32_t{1} << member}), ChunkMover::Done::kNot);
  EXPECT_EQ(table_.load(3).member(), member);
  EXPECT_EQ(taken(), kChunks);
}

TEST(HeatTest, a_use_counts_once_a_tick_and_half_after_a_second) {
  Heat heat;
  ASSERT_TRUE(heat.allocate(4));
  uint64_t now_ns = 40 * Heat::kTicksPerSecond * Heat::kTickNs;
  for (unsigned i = 0; i < 10; ++i, now_ns += Heat::kTickNs) {
    EXPECT_EQ(heat.note(1, now_ns), i + 1);
    EXPECT_EQ(heat.note(1, now_ns), 0u);
  }
  EXPECT_EQ(heat.of(1, now_ns), 10u);
  EXPECT_EQ(heat.of(1, now_ns + Heat::kTicksPerSecond * Heat::kTickNs), 5u);
  EXPECT_EQ(heat.of(1, now_ns + 60 * Heat::kTicksPerSecond * Heat::kTickNs), 0u);
  EXPECT_EQ(heat.of(2, now_ns), 0u);
}

}  // namespace
}  // namespace spw::store
