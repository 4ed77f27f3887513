#include "base/need.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/exit_status.h"

namespace spw {
namespace {

using testing::ExitedWithCode;

TEST(Need, what_is_there_needs_nothing) {
  const int there = 0;
  need(true, "do it");
  need(Status());
  need_memory(&there, "get memory");
}

TEST(Need, what_is_refused_ends_the_process_with_one_line) {
  EXPECT_EXIT(cannot_go_on("give memory back", ENOMEM), ExitedWithCode(kExitFailure),
              "^spillway: cannot give memory back: Cannot allocate memory\n$");
  EXPECT_EXIT(need_memory(nullptr, "get memory for a table"), ExitedWithCode(kExitFailure),
              "^spillway: cannot get memory for a table: Cannot allocate memory\n$");
  EXPECT_EXIT(need(::close(-1) == 0, "close it"), ExitedWithCode(kExitFailure),
              "^spillway: cannot close it: Bad file descriptor\n$");
  EXPECT_EXIT(need(Status(EAGAIN, "cannot start a thread")), ExitedWithCode(kExitFailure),
              "^spillway: cannot start a thread: Resource temporarily unavailable\n$");
}

TEST(Need, of_many_threads_that_end_it_one_speaks) {
  const auto end_by_many = [] {
    for (int i = 0; i < 8; ++i) std::thread([] { cannot_go_on("go on", EIO); }).detach();
    for (;;) ::pause();
  };
  EXPECT_EXIT(end_by_many(), ExitedWithCode(kExitFailure), "^spillway: cannot go on: Input/output error\n$");
}

TEST(Need, a_thread_that_cannot_go_on_while_it_ends_the_process_ends_it) {
  const auto end_twice = [] {
    await_end_of_others();
    cannot_go_on("end it", EIO);
  };
  EXPECT_EXIT(end_twice(), ExitedWithCode(kExitFailure), "^$");
}

}  // namespace
}  // namespace spw
