#include "platform/end_request.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/time.h"

namespace spw::platform {
namespace {

constexpr int kCode = 74;

int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

template <class Work>
pid_t fork_to(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(3);
  }
  return child;
}

// The exit code of a process that can be asked to end, and does `work` meanwhile.
template <class Work>
int code_of_asked(Work work) {
  const int status = status_of(fork_to([&] {
    auto request = EndRequest::create(kCode);
    if (!request) _exit(1);
    work(**request);
    _exit(2);
  }));
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

void sleep_for_ever() {
  for (;;) pause();
}

TEST(EndRequest, a_process_ends_when_a_grandchild_asks) {
  EXPECT_EQ(code_of_asked([](EndRequest& request) {
              fork_to([&] {
                fork_to([&] {
                  if (request.ask()) request.confirm();
                });
              });
              sleep_for_ever();
            }),
            kCode);
}

TEST(EndRequest, a_parent_does_not_see_who_waits_for_its_end) {
  // It does nothing but wait for its child, and would then end by itself.
  EXPECT_EQ(code_of_asked([](EndRequest& request) {
              status_of(fork_to([&] {
                if (request.ask()) request.confirm();
                request.wait_for_end();
              }));
            }),
            kCode);
}

TEST(EndRequest, who_waits_goes_on_when_it_has_ended) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(code_of_asked([&](EndRequest& request) {
              fork_to([&] {
                if (request.ask()) request.confirm();
                request.wait_for_end();
                request.wait_for_end();  // over already
                [[maybe_unused]] auto written = write(ends[1], "x", 1);
              });
              sleep_for_ever();
            }),
            kCode);
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 1);
  close(ends[0]);
}

TEST(EndRequest, one_asker_is_the_first_and_unconfirmed_it_ends_as_well) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(code_of_asked([&](EndRequest& request) {
              fork_to([&] {
                const char answers[] = {request.ask() ? 'f' : '-', request.ask() ? 'f' : '-'};
                [[maybe_unused]] auto written = write(ends[1], answers, 2);
              });
              sleep_for_ever();
            }),
            kCode);
  close(ends[1]);
  char answers[3] = {};
  EXPECT_EQ(read(ends[0], answers, 2), 2);
  EXPECT_STREQ(answers, "f-");
  close(ends[0]);
}

TEST(EndRequest, a_process_that_nobody_asks_goes_on) {
  EXPECT_EQ(code_of_asked([](EndRequest&) {
              status_of(fork_to([] {}));
              sleep_ns(1'000'000);
            }),
            2);
}

}  // namespace
}  // namespace spw::platform
