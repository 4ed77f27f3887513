#include "cache/block_table/pin_word.h"

#include <gtest/gtest.h>

namespace spw::cache {
namespace {

constexpr BlockId kBlock((uint64_t{1} << kBlockIdBits) - 3);

// A word in which `kBlock` is resident.
class PinWordTest : public testing::Test {
 protected:
  PinWordTest() {
    word.store_release(PinWord::filling(kBlock, 0, false));
    word.end_filling(FrameState::kResident, 0);
  }
  PinWord now() const { return word.load_acquire(); }
  AtomicPinWord word;
  PinWord was;
};

TEST_F(PinWordTest, fields_do_not_touch_each_other) {
  PinWord full = PinWord::filling(kBlock, PinWord::kRefsMax, true).in_state(FrameState::kFailed);
  EXPECT_EQ(full.block(), kBlock);
  EXPECT_EQ(full.refs(), PinWord::kRefsMax);
  EXPECT_EQ(full.state(), FrameState::kFailed);
  EXPECT_TRUE(full.ahead());
  EXPECT_FALSE(full.dirty() || full.writing() || full.referenced() || full.waiters());
  EXPECT_EQ(PinWord::free().bits(), 0u);
  EXPECT_EQ(PinWord::free().state(), FrameState::kFree);
}

TEST_F(PinWordTest, a_pin_counts_references_and_marks) {
  ASSERT_TRUE(word.try_pin(kBlock, false, &was));
  EXPECT_EQ(now().refs(), 1u);
  EXPECT_TRUE(now().referenced());
  EXPECT_FALSE(now().dirty());
  ASSERT_TRUE(word.try_pin(kBlock, true, &was));
  EXPECT_FALSE(was.dirty());
  EXPECT_EQ(now().refs(), 2u);
  EXPECT_TRUE(now().dirty());
  EXPECT_EQ(word.unpin().refs(), 2u);
  EXPECT_EQ(now().refs(), 1u);
}

TEST_F(PinWordTest, a_pin_of_another_block_or_state_fails) {
  EXPECT_FALSE(word.try_pin(BlockId(kBlock.value - 1), false, &was));
  for (FrameState state : {FrameState::kFree, FrameState::kFilling, FrameState::kFailed}) {
    word.store_release(PinWord::filling(kBlock, 0, false).in_state(state));
    EXPECT_FALSE(word.try_pin(kBlock, false, &was));
  }
  word.store_release(PinWord::filling(kBlock, 0, true).in_state(FrameState::kResident));
  EXPECT_FALSE(word.try_pin(kBlock, false, &was)) << "the first use of a block read ahead is not a plain hit";
}

TEST_F(PinWordTest, end_of_a_fill_tells_of_waiters_and_keeps_references) {
  word.store_release(PinWord::filling(kBlock, 3, false).with(PinWord::kWaiters));
  EXPECT_TRUE(word.end_filling(FrameState::kResident, PinWord::kDirty));
  EXPECT_EQ(now().refs(), 3u);
  EXPECT_FALSE(now().waiters());
  EXPECT_TRUE(now().dirty());
  word.store_release(PinWord::filling(kBlock, 1, false));
  EXPECT_FALSE(word.end_filling(FrameState::kFailed, 0));
  EXPECT_EQ(now().state(), FrameState::kFailed);
}

TEST_F(PinWordTest, only_an_unpinned_clean_frame_is_freed) {
  ASSERT_TRUE(word.try_pin(kBlock, false, &was));
  EXPECT_FALSE(word.try_free(false, &was));
  EXPECT_FALSE(word.try_free(true, &was));
  word.mark_dirty();
  word.unpin();
  EXPECT_FALSE(word.try_free(false, &was));
  ASSERT_TRUE(word.try_free(true, &was));
  EXPECT_EQ(was.block(), kBlock);
  EXPECT_EQ(now().bits(), 0u);
}

TEST_F(PinWordTest, a_frame_being_written_is_not_freed) {
  word.mark_dirty();
  ASSERT_TRUE(word.try_begin_writing(false));
  EXPECT_FALSE(now().dirty());
  EXPECT_FALSE(word.try_free(true, &was));
  word.end_writing();
  EXPECT_TRUE(word.try_free(false, &was));
}

TEST_F(PinWordTest, a_write_during_a_writeback_leaves_the_frame_dirty) {
  word.mark_dirty();
  ASSERT_TRUE(word.try_begin_writing(false));
  ASSERT_TRUE(word.try_pin(kBlock, true, &was));
  word.unpin();
  EXPECT_FALSE(word.try_begin_writing(false)) << "one writeback at a time";
  word.end_writing();
  EXPECT_TRUE(now().dirty());
  EXPECT_TRUE(word.try_begin_writing(false));
}

TEST_F(PinWordTest, a_pinned_frame_is_written_only_on_request_and_stays_dirty) {
  ASSERT_TRUE(word.try_pin(kBlock, true, &was));
  EXPECT_FALSE(word.try_begin_writing(false));
  ASSERT_TRUE(word.try_begin_writing(true));
  EXPECT_TRUE(now().dirty());
  word.end_writing();
  EXPECT_TRUE(now().dirty());
}

TEST_F(PinWordTest, a_failed_writeback_leaves_the_frame_dirty) {
  word.mark_dirty();
  ASSERT_TRUE(word.try_begin_writing(false));
  word.end_writing_dirty();
  EXPECT_TRUE(now().dirty());
  EXPECT_FALSE(now().writing());
}

TEST_F(PinWordTest, a_failed_frame_is_freed_when_its_last_waiter_has_gone) {
  word.store_release(PinWord::filling(kBlock, 2, false));
  word.end_filling(FrameState::kFailed, 0);
  EXPECT_FALSE(word.try_free_failed());
  word.unpin();
  EXPECT_FALSE(word.try_free_failed());
  word.unpin();
  EXPECT_TRUE(word.try_free_failed());
}

}  // namespace
}  // namespace spw::cache
