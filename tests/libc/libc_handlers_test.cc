// The program's signal handlers, put off while their thread is in the runtime.
#include <errno.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>

#include <algorithm>
#include <vector>

#include "base/in_runtime.h"
#include "libc/signals/handlers.h"

namespace spw::libc {
namespace {

std::vector<int> g_values;  // of the calls, in order
sigjmp_buf g_back;

void note(int signal, siginfo_t* info, void*) {
  EXPECT_FALSE(InRuntime::here());
  g_values.push_back(info->si_code == SI_QUEUE ? info->si_value.sival_int : -signal);
  errno = ENOTTY;
}

void set(int signal, int flags, void (*handler)(int, siginfo_t*, void*) = note) {
  g_values.clear();
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  ASSERT_EQ(set_handler(signal, &action, nullptr), 0);
}

void send(int signal, int value) {
  sigval with{};
  with.sival_int = value;
  ASSERT_EQ(pthread_sigqueue(pthread_self(), signal, with), 0);
}

bool is_blocked(int signal) {
  sigset_t now{};
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

TEST(Handlers, outside_of_the_runtime_a_handler_is_called_at_once) {
  set(SIGUSR1, 0);
  send(SIGUSR1, 7);
  EXPECT_EQ(g_values, std::vector<int>{7});
}

TEST(Handlers, inside_a_signal_waits_for_the_outermost_exit_and_keeps_what_it_carries) {
  for (const int flags : {0, static_cast<int>(SA_NODEFER)}) {
    set(SIGUSR1, flags);
    {
      InRuntime outer;
      {
        InRuntime inner;
        send(SIGUSR1, 7);
      }
      EXPECT_TRUE(g_values.empty());
      EXPECT_TRUE(is_blocked(SIGUSR1));
      errno = EAGAIN;
    }
    EXPECT_EQ(g_values, std::vector<int>{7});
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_FALSE(is_blocked(SIGUSR1));
    {
      InRuntime again;
    }
    EXPECT_EQ(g_values.size(), 1u);
  }
}

TEST(Handlers, a_signal_that_is_put_off_twice_comes_once_and_real_time_ones_all_come) {
  set(SIGUSR1, 0);
  set(SIGRTMIN, 0);
  {
    InRuntime inside;
    for (int i = 1; i <= 3; ++i) {
      send(SIGUSR1, i);
      send(SIGRTMIN, 10 * i);
    }
  }
  EXPECT_EQ(std::count(g_values.begin(), g_values.end(), 1), 1);
  for (const int value : {10, 20, 30}) EXPECT_EQ(std::count(g_values.begin(), g_values.end(), value), 1);
  EXPECT_EQ(g_values.size(), 4u);
}

TEST(Handlers, what_the_program_blocked_stays_blocked) {
  set(SIGUSR1, 0);
  sigset_t other;
  sigemptyset(&other);
  sigaddset(&other, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &other, nullptr);
  {
    InRuntime inside;
    send(SIGUSR1, 1);
  }
  EXPECT_TRUE(is_blocked(SIGUSR2));
  pthread_sigmask(SIG_UNBLOCK, &other, nullptr);
  EXPECT_EQ(g_values, std::vector<int>{1});
}

TEST(Handlers, one_that_is_called_once_is_called_once_though_it_was_put_off) {
  set(SIGUSR1, static_cast<int>(SA_RESETHAND));
  struct sigaction now{};
  {
    InRuntime inside;
    send(SIGUSR1, 5);
    ASSERT_EQ(set_handler(SIGUSR1, nullptr, &now), 0);
    EXPECT_EQ(now.sa_sigaction, &note);
  }
  EXPECT_EQ(g_values, std::vector<int>{5});
  ASSERT_EQ(set_handler(SIGUSR1, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

TEST(Handlers, a_signal_that_is_ignored_meanwhile_is_gone) {
  set(SIGUSR1, 0);
  {
    InRuntime inside;
    send(SIGUSR1, 5);
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    ASSERT_EQ(set_handler(SIGUSR1, &ignore, nullptr), 0);
  }
  EXPECT_TRUE(g_values.empty());
  EXPECT_FALSE(is_blocked(SIGUSR1));
}

TEST(Handlers, a_handler_that_was_put_off_may_jump) {
  set(SIGUSR1, 0, [](int, siginfo_t*, void*) { siglongjmp(g_back, 1); });
  for (volatile int i = 0; i < 3; i = i + 1) {
    if (sigsetjmp(g_back, 1) != 0) continue;
    InRuntime inside;
    send(SIGUSR1, 1);
    EXPECT_TRUE(InRuntime::here());
  }
  EXPECT_FALSE(InRuntime::here());
  EXPECT_FALSE(is_blocked(SIGUSR1));
}

}  // namespace
}  // namespace spw::libc
