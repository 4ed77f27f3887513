#include "store/engine/aio_context.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace spw::store {
namespace {

constexpr size_t kDepth = 8, kBytes = 512;

class AioContextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!AioContext::exist()) GTEST_SKIP() << "no asynchronous I/O here: " << std::strerror(errno);
    char name[] = "/tmp/spillway-aio-XXXXXX";
    file_ = ::mkstemp(name);
    ASSERT_GE(file_, 0);
    ::unlink(name);
  }
  void TearDown() override { ::close(file_); }

  // So many writes at once, numbered from `first` on; they are done when it returns, since they go to the page cache.
  void write(AioContext& context, uint64_t first, size_t count) {
    std::vector<iocb> controls(count);
    std::vector<iocb*> all;
    for (size_t i = 0; i < count; ++i) {
      controls[i] = {};
      controls[i].aio_data = first + i;
      controls[i].aio_lio_opcode = IOCB_CMD_PWRITE;
      controls[i].aio_fildes = static_cast<uint32_t>(file_);
      controls[i].aio_buf = reinterpret_cast<uintptr_t>(data_.data());
      controls[i].aio_nbytes = kBytes;
      all.push_back(&controls[i]);
    }
    ASSERT_EQ(context.submit(all), static_cast<int>(count));
  }
  static AioContext::Taken taken() {
    auto context = AioContext::take(kDepth);
    EXPECT_TRUE(context) << context.status().message();
    return std::move(*context);
  }

  // The one that is taken next; it is given up again.
  static const AioContext* next() {
    AioContext* const context = taken().release();
    AioContext::GiveBack()(context);
    return context;
  }

  int file_ = -1;
  std::array<char, kBytes> data_{};
};

TEST_F(AioContextTest, results_come_in_order_however_often_the_ring_goes_round) {
  const auto context = taken();
  uint64_t next = 0;
  for (int round = 0; round < 1000; ++round) {
    EXPECT_FALSE(context->may_have_results());
    write(*context, next, kDepth - 1);
    EXPECT_TRUE(context->may_have_results());
    std::array<io_event, 3> events;
    for (size_t left = kDepth - 1; left > 0;) {
      const int count = context->take_results(events);
      ASSERT_EQ(count, static_cast<int>(std::min(left, events.size())));
      for (int i = 0; i < count; ++i) {
        ASSERT_EQ(events[static_cast<size_t>(i)].data, next++);
        ASSERT_EQ(events[static_cast<size_t>(i)].res, static_cast<int64_t>(kBytes));
      }
      left -= static_cast<size_t>(count);
    }
    ASSERT_EQ(context->take_results(events), 0);
  }
}

TEST_F(AioContextTest, what_one_gave_up_another_takes_if_it_is_large_enough) {
  const AioContext* const first = next();
  EXPECT_EQ(next(), first);
  auto larger = AioContext::take(100 * kDepth);
  ASSERT_TRUE(larger);
  EXPECT_NE(larger->get(), first);
  EXPECT_EQ(next(), first);
}

TEST_F(AioContextTest, a_child_takes_none_of_its_parents) {
  auto in_use = taken();
  const AioContext* const used = in_use.get();
  const AioContext* const kept = next();
  const pid_t child = ::fork();
  if (child == 0) {
    AioContext::in_child();
    in_use.reset();
    const auto own = taken();
    if (own.get() == kept || own.get() == used) ::_exit(1);
    write(*own, 7, 1);
    io_event event{};
    ::_exit(own->take_results({&event, 1}) == 1 && event.data == 7 ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(next(), kept);
}

}  // namespace
}  // namespace spw::store
