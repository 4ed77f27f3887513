#include "base/status.h"

#include <gtest/gtest.h>

namespace spw {
namespace {

TEST(Status, a_failed_calls_message_ends_with_what_the_errno_means) {
  Status status(ENOSPC, "cannot open the spill file in /mnt");
  EXPECT_EQ(status.message(), "cannot open the spill file in /mnt: No space left on device");
}

TEST(Status, a_sentence_is_the_whole_message) {
  Status status = Status::sentence(ECHILD, "a forked child has none; call exec first");
  EXPECT_EQ(status.message(), "a forked child has none; call exec first");
  EXPECT_EQ(status.context(), status.message());
  EXPECT_EQ(status.error(), ECHILD);
  EXPECT_FALSE(status.is_ok());
}

TEST(Status, a_copy_says_the_same) {
  Status copy;
  {
    Status status = Status::sentence(EBUSY, "all frames are pinned");
    copy = status;
  }
  EXPECT_EQ(copy.message(), "all frames are pinned");
}

}  // namespace
}  // namespace spw
