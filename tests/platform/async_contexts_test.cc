#include "platform/async_contexts.h"

#include <gtest/gtest.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace spw::platform {
namespace {

TEST(AsyncContextsTest, there_are_none_at_first) { EXPECT_FALSE(has_async_contexts_of_program()); }

TEST(AsyncContextsTest, a_ring_is_seen_until_it_is_closed) {
  io_uring_params parameters{};
  const int ring = static_cast<int>(::syscall(SYS_io_uring_setup, 8, &parameters));
  if (ring < 0) GTEST_SKIP() << "io_uring_setup: " << std::strerror(errno);
  EXPECT_TRUE(has_async_contexts_of_program());
  {
    const OwnAsyncContext own;
    EXPECT_FALSE(has_async_contexts_of_program());
  }
  EXPECT_TRUE(has_async_contexts_of_program());
  ::close(ring);
  EXPECT_FALSE(has_async_contexts_of_program());
}

TEST(AsyncContextsTest, so_is_a_context_of_libaio) {
  aio_context_t context = 0;
  if (::syscall(SYS_io_setup, 8, &context) != 0) GTEST_SKIP() << "io_setup: " << std::strerror(errno);
  EXPECT_TRUE(has_async_contexts_of_program());
  ::syscall(SYS_io_destroy, context);
  EXPECT_FALSE(has_async_contexts_of_program());
}

}  // namespace
}  // namespace spw::platform
