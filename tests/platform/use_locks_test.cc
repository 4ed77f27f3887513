#include "platform/use_locks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace spw::platform {
namespace {

// Forks a child that has its own locks, and does `body`.
pid_t fork_with(UseLocks& locks, const std::function<void()>& body) {
  auto own = locks.for_child();
  EXPECT_TRUE(own.is_ok());
  const pid_t child = ::fork();
  if (child == 0) {
    locks.become(std::move(*own));
    body();
    ::_exit(0);
  }
  return child;
}

int await(pid_t child) {
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(use_locks, who_uses_something_alone_is_told_so) {
  auto locks = UseLocks::create();
  ASSERT_TRUE(locks.is_ok());
  const uint64_t id = locks->new_id();
  ASSERT_TRUE(locks->use(id).is_ok());
  EXPECT_TRUE(locks->is_only_user(id));
  EXPECT_TRUE(locks->is_only_user(id));
}

TEST(use_locks, a_child_uses_what_its_parent_does_until_it_is_killed) {
  auto locks = UseLocks::create();
  ASSERT_TRUE(locks.is_ok());
  const uint64_t shared = locks->new_id(), later = locks->new_id();
  ASSERT_TRUE(locks->use(shared).is_ok());
  const pid_t child = fork_with(*locks, [] { ::pause(); });
  ASSERT_TRUE(locks->use(later).is_ok());
  EXPECT_FALSE(locks->is_only_user(shared));
  EXPECT_TRUE(locks->is_only_user(later));
  ::kill(child, SIGKILL);
  await(child);
  EXPECT_TRUE(locks->is_only_user(shared));
}

TEST(use_locks, a_child_sees_its_parent_give_something_up) {
  auto locks = UseLocks::create();
  ASSERT_TRUE(locks.is_ok());
  const uint64_t id = locks->new_id();
  ASSERT_TRUE(locks->use(id).is_ok());
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = fork_with(*locks, [&] {
    const bool was_alone = locks->is_only_user(id);
    char byte;
    if (::read(pipe_ends[0], &byte, 1) != 1) ::_exit(9);
    ::_exit((was_alone ? 1 : 0) + (locks->is_only_user(id) ? 2 : 0));
  });
  ::usleep(20000);
  locks->end_use(id);
  ASSERT_EQ(::write(pipe_ends[1], "x", 1), 1);
  EXPECT_EQ(await(child), 2);
}

TEST(use_locks, a_child_that_executes_another_program_uses_nothing) {
  auto locks = UseLocks::create();
  ASSERT_TRUE(locks.is_ok());
  const uint64_t id = locks->new_id();
  ASSERT_TRUE(locks->use(id).is_ok());
  const pid_t child = fork_with(*locks, [] { ::execlp("sleep", "sleep", "30", nullptr); });
  for (int i = 0; i < 1000 && !locks->is_only_user(id); ++i) ::usleep(10000);
  EXPECT_TRUE(locks->is_only_user(id));
  ::kill(child, SIGKILL);
  await(child);
}

TEST(use_locks, ids_differ_between_processes) {
  auto locks = UseLocks::create();
  ASSERT_TRUE(locks.is_ok());
  const uint64_t before = locks->new_id();
  const pid_t child = fork_with(*locks, [&] { ::_exit(static_cast<int>(locks->new_id() - before)); });
  EXPECT_EQ(await(child), 1);
  EXPECT_EQ(locks->new_id() - before, 2u);
}

}  // namespace
}  // namespace spw::platform
