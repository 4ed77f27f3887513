#include "libc/process/forks.h"

#include <linux/sched.h>
#include <sys/syscall.h>

#include <cerrno>

#include "libc/managed.h"
#include "libc/real.h"

namespace spw::libc {

namespace {
constinit ForkHandlers g_fork_handlers;
using EndHandler = void();
constinit EndHandler* g_end_handler = nullptr;  // GCC 12 takes the longer form for a function
}  // namespace

namespace detail {

void before_fork() {
  if (g_fork_handlers.before != nullptr) g_fork_handlers.before();
}
void after_fork(bool is_child) {
  const int saved_errno = errno;
  auto* const handler = is_child ? g_fork_handlers.in_child : g_fork_handlers.in_parent;
  if (handler != nullptr) handler();
  errno = saved_errno;
}

}  // namespace detail

void set_fork_handlers(const ForkHandlers& handlers) { g_fork_handlers = handlers; }

void set_end_handler(void (*ends)()) { g_end_handler = ends; }
void process_ends_at_once() {
  if (g_end_handler != nullptr) g_end_handler();
}

bool is_fork(long number, const CallArguments& given) {
  constexpr auto kShares = static_cast<uint64_t>(kSharingFlags);
  if (number == SYS_fork) return true;
  if (number == SYS_clone) return (static_cast<uint64_t>(given[0]) & kShares) == 0 && given[1] == 0;
  if (number != SYS_clone3) return false;
  const auto* const arguments = reinterpret_cast<const clone_args*>(given[0]);
  return (load_value(reinterpret_cast<const uint64_t*>(&arguments->flags)) & kShares) == 0 &&
         load_value(reinterpret_cast<const uint64_t*>(&arguments->stack)) == 0;
}

long fork_by_number(long number, const CallArguments& given) {
  detail::before_fork();
  const long result = real().syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
  detail::after_fork(result == 0);
  return result;
}

}  // namespace spw::libc
