#include "platform/successor.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/units.h"
#include "platform/file.h"
#include "platform/memory.h"

extern char** environ;

namespace spw::platform {

namespace {

constexpr uint64_t kStackBytes = 16 * kKiB;
constexpr uint64_t kAllSignals = ~uint64_t{0};

// What both new processes need. They have this process's memory, one after the other, while its thread sleeps: they
// allocate nothing and call the kernel only.
struct Plan {
  const char* program = nullptr;
  char* const* words = nullptr;
  char* const* environment = nullptr;
  int nothing = -1;  // to read from and write to
  int predecessor = -1;
  char* stack_end = nullptr;  // of the second one
  int error = 0;
};

int fails(Plan& plan) {
  plan.error = errno;
  return 1;
}

int run_program(void* given) {
  Plan& plan = *static_cast<Plan*>(given);
  ::syscall(SYS_setsid);
  for (int stream = 0; stream < kPredecessor; ++stream)
    if (::syscall(SYS_dup3, plan.nothing, stream, 0) < 0) return fails(plan);
  if (::syscall(SYS_dup3, plan.predecessor, kPredecessor, 0) < 0) return fails(plan);
  if (::syscall(SYS_close_range, kPredecessor + 1, ~0U, 0) < 0) return fails(plan);
  ::syscall(SYS_execve, plan.program, plan.words, plan.environment);
  return fails(plan);
}

// Ends at once, which leaves the second one without a parent that would have to wait for it.
int run_second(void* given) {
  Plan& plan = *static_cast<Plan*>(given);
  return ::clone(&run_program, plan.stack_end, CLONE_VM | CLONE_VFORK | SIGCHLD, given) < 0 ? fails(plan) : 0;
}

// Neither a signal nor anybody else's wait() hears of it: it has no signal for its end.
Status run_first(Plan& plan) {
  auto stacks = map_anonymous(2 * kStackBytes);
  if (!stacks) return stacks.status();
  plan.stack_end = reinterpret_cast<char*>(stacks->data()) + kStackBytes;
  uint64_t before = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &kAllSignals, &before, sizeof before);
  const int first = ::clone(&run_second, stacks->data() + 2 * kStackBytes, CLONE_VM | CLONE_VFORK, &plan);
  if (first < 0) plan.error = errno;
  if (first > 0) ::syscall(SYS_wait4, first, nullptr, __WCLONE, nullptr);
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  return plan.error == 0 ? Status::ok() : Status(plan.error, "cannot start a program");
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_without_preloads() {
  std::vector<std::string> kept;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each)
    if (!std::string_view(*each).starts_with("LD_PRELOAD=")) kept.emplace_back(*each);
  return kept;
}

// Behind the numbers that are given away.
Result<File> out_of_the_way(long fd) {
  if (fd < 0) return Status(errno, "cannot open");
  const File opened(static_cast<int>(fd));
  const auto moved = static_cast<int>(::syscall(SYS_fcntl, opened.fd(), F_DUPFD_CLOEXEC, kPredecessor + 1));
  if (moved < 0) return Status(errno, "cannot move a descriptor");
  return File(moved);
}

bool gets_children_of_others() {
  int is_subreaper = 0;
  return ::getpid() == 1 || (::prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper) == 0 && is_subreaper != 0);
}

}  // namespace

Status start_successor(const std::string& program, const std::vector<std::string>& words) {
  if (gets_children_of_others()) return Status(EPERM, "cannot start a program beside this one");
  auto process = out_of_the_way(::syscall(SYS_pidfd_open, ::getpid(), 0));
  if (!process) return process.status();
  auto nothing = out_of_the_way(::syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0));
  if (!nothing) return nothing.status();
  const std::vector<std::string> variables = environment_without_preloads();
  const std::vector<char*> for_words = pointers_to(words), for_environment = pointers_to(variables);
  Plan plan;
  plan.program = program.c_str();
  plan.words = for_words.data();
  plan.environment = for_environment.data();
  plan.nothing = nothing->fd();
  plan.predecessor = process->fd();
  return run_first(plan);
}

bool await_predecessor() {
  constexpr uint64_t kNoSignals = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &kNoSignals, nullptr, sizeof kNoSignals);
  pollfd ended{.fd = kPredecessor, .events = POLLIN, .revents = 0};
  while (::poll(&ended, 1, -1) < 0)
    if (errno != EINTR) return false;
  return (ended.revents & POLLNVAL) == 0;
}

}  // namespace spw::platform
