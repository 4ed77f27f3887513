// Who starts a partition's transfers, and when (cache/partition/partition_io.h).
#include "cache/partition/partition_io.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/atomic.h"
#include "platform/memory.h"
#include "platform/time.h"
#include "store/memory_store.h"

namespace spw::cache {
namespace {

constexpr uint64_t kBlock = 4096;
// For what must not happen meanwhile.
constexpr uint64_t kAWhileNs = 20'000'000;

class PartitionIoTest : public testing::Test {
 protected:
  void SetUp() override {
    for (auto& store : stores_) store = std::move(*store::MemoryStore::create(kMiB));
    memory_ = std::move(*platform::map_anonymous(kBlock));
  }
  void TearDown() override { finish_all(); }
  void finish_all() {
    kick_all();
    while (io_.busy()) {
      PartitionIo::Done done[PartitionIo::kReapMax];
      for (size_t i = 0, got = io_.reap(done); i < got; ++i) io_.put_back(done[i].op);
    }
  }
  void kick_all() {
    Kicks kicks;
    io_.collect(&kicks);
    io_.kick(kicks);
  }
  void submit_one(store::Store& store) {
    IoOp* op = io_.take();
    ASSERT_NE(op, nullptr);
    op->store = &store;
    op->request.op = store::Op::kWrite;
    op->request.offset_bytes = 0;
    op->append_segment(memory_.data(), kBlock);
    io_.start(op);
    io_.submit();
  }

  std::unique_ptr<store::MemoryStore> stores_[Kicks::kMax + 2];
  platform::Mapping memory_;
  PartitionIo io_{Kicks::kMax + 2};
};

TEST_F(PartitionIoTest, nothing_of_an_operation_is_left_when_it_is_taken_again) {
  IoOp* op = io_.take();
  const IoOp fresh = *op;
  op->count = 3;
  op->answer_when_done = reinterpret_cast<Request*>(&op);
  op->staging = memory_.data();
  op->append_segment(memory_.data(), kBlock);
  op->follows_store = op->is_dirty = op->is_unit = true;
  op->uses_seen = false;
  op->marker = 2;
  io_.put_back(op);
  ASSERT_EQ(io_.take(), op);
  EXPECT_EQ(op->count, fresh.count);
  EXPECT_EQ(op->answer_when_done, fresh.answer_when_done);
  EXPECT_EQ(op->staging, fresh.staging);
  EXPECT_EQ(op->request.segment_count, fresh.request.segment_count);
  EXPECT_EQ(op->follows_store, fresh.follows_store);
  EXPECT_EQ(op->is_dirty, fresh.is_dirty);
  EXPECT_EQ(op->is_unit, fresh.is_unit);
  EXPECT_EQ(op->uses_seen, fresh.uses_seen);
  EXPECT_EQ(op->marker, fresh.marker);
  io_.put_back(op);
}

TEST_F(PartitionIoTest, a_kick_is_due_once_for_what_was_submitted) {
  Kicks kicks;
  io_.collect(&kicks);
  EXPECT_EQ(kicks.count, 0u);
  submit_one(*stores_[0]);
  submit_one(*stores_[0]);
  io_.collect(&kicks);
  EXPECT_EQ(kicks.count, 1u);
  Kicks again;
  io_.collect(&again);
  EXPECT_EQ(again.count, 0u);
  io_.kick(kicks);
}

TEST_F(PartitionIoTest, what_is_put_back_is_due_again) {
  submit_one(*stores_[0]);
  submit_one(*stores_[1]);
  Kicks kicks;
  io_.collect(&kicks);
  EXPECT_EQ(kicks.count, 2u);
  io_.put_back(&kicks);
  EXPECT_EQ(kicks.count, 0u);
  io_.collect(&kicks);
  EXPECT_EQ(kicks.count, 2u);
  io_.kick(kicks);
}

TEST_F(PartitionIoTest, kicks_beyond_what_can_be_collected_are_done_at_once) {
  for (auto& store : stores_) submit_one(*store);
  Kicks kicks;
  io_.collect(&kicks);
  EXPECT_EQ(kicks.count, Kicks::kMax);
  io_.kick(kicks);
}

// An owner that serves another request before it lets go may be asked
// to close the store for which it has collected a kick.
TEST_F(PartitionIoTest, a_store_is_closed_by_an_owner_that_has_put_its_kicks_back) {
  submit_one(*stores_[0]);
  Kicks kicks;
  io_.collect(&kicks);
  io_.put_back(&kicks);
  PartitionIo::Done done[PartitionIo::kReapMax];
  while (io_.reap(done) == 0) {  // a store in memory has done it already
  }
  io_.put_back(done[0].op);
  io_.close_store(*stores_[0]);
  io_.collect(&kicks);
  EXPECT_EQ(kicks.count, 0u) << "of a queue that is gone";
}

TEST_F(PartitionIoTest, a_store_is_not_closed_while_another_thread_is_about_to_kick_its_queue) {
  submit_one(*stores_[0]);
  Kicks kicks;
  io_.collect(&kicks);
  PartitionIo::Done done[PartitionIo::kReapMax];
  while (io_.reap(done) == 0) {
  }
  io_.put_back(done[0].op);
  Atomic<bool> is_kicked(false);
  std::thread kicker([&] {
    platform::sleep_ns(kAWhileNs);
    is_kicked.store_release(true);
    io_.kick(kicks);
  });
  io_.close_store(*stores_[0]);
  EXPECT_TRUE(is_kicked.load_acquire());
  kicker.join();
}

}  // namespace
}  // namespace spw::cache
