// _Fork() and clone() under their ordinary names. fork() calls the handlers by itself.
#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <unistd.h>

#include "libc/entry.h"
#include "libc/process/forks.h"
#include "libc/real.h"

using namespace spw::libc;

namespace {

struct Begin {
  int (*body)(void*);
  void* argument;

  // In the child, whose copy of the parent's stack this lies on.
  static int run(void* begin) {
    const Begin its = *static_cast<Begin*>(begin);
    detail::after_fork(true);
    real()._exit(its.body(its.argument));  // clone() would end this thread alone, and the runtime has others
    return 0;
  }
};

using Fork = pid_t (*)();
// A libc that does not have it has no program that calls it. Looked up at the start, since _Fork() may be called
// anywhere.
Fork g_fork = nullptr;
__attribute__((constructor)) void find_fork() { g_fork = reinterpret_cast<Fork>(dlsym(RTLD_NEXT, "_Fork")); }

}  // namespace

SPW_ENTRY pid_t _Fork() noexcept {
  if (g_fork == nullptr) find_fork();
  if (spw::InRuntime::here()) return g_fork();
  detail::before_fork();
  const pid_t result = g_fork();
  detail::after_fork(result == 0);
  return result;
}

SPW_ENTRY int clone(int (*body)(void*), void* stack, int flags, void* argument, ...) noexcept {
  va_list more;
  va_start(more, argument);
  auto* const parent_id = va_arg(more, pid_t*);
  auto* const local = va_arg(more, void*);
  auto* const child_id = va_arg(more, pid_t*);
  va_end(more);
  if ((flags & kSharingFlags) != 0 || spw::InRuntime::here())
    return real().clone(body, stack, flags, argument, parent_id, local, child_id);
  // libc writes there, when nothing can be brought in.
  if (stack != nullptr) {
    auto* const top = static_cast<volatile char*>(stack) - 1;
    *top = *top;
  }
  detail::before_fork();
  Begin begin{body, argument};
  const int result = real().clone(&Begin::run, stack, flags, &begin, parent_id, local, child_id);
  detail::after_fork(false);
  return result;
}
