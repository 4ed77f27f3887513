#include "platform/thread.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>

namespace spw::platform {
namespace {

TEST(Thread, runs_its_body_and_is_joined_at_its_end) {
  std::atomic<int> ran{0};
  {
    auto thread = Thread::start([&] { ++ran; });
    ASSERT_TRUE(thread.is_ok());
    Thread moved = std::move(*thread);
  }
  EXPECT_EQ(ran, 1);
}

TEST(Thread, gets_none_of_the_programs_signals) {
  sigset_t inside;
  sigemptyset(&inside);
  {
    auto thread = Thread::start([&] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); });
    ASSERT_TRUE(thread.is_ok());
  }
  for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM}) EXPECT_EQ(sigismember(&inside, signal), 1) << signal;
  sigset_t here;
  pthread_sigmask(SIG_SETMASK, nullptr, &here);
  EXPECT_EQ(sigismember(&here, SIGUSR1), 0);
}

}  // namespace
}  // namespace spw::platform
