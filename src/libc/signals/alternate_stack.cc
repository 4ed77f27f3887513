#include "libc/signals/alternate_stack.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/in_runtime.h"
#include "libc/managed.h"
#include "libc/real.h"

namespace spw::libc {

namespace {

struct Replacement {
  void* of_program = nullptr;
  void* native = nullptr;
  size_t bytes = 0;
};

// constinit: reached by handlers, which may make nothing.
constinit thread_local Replacement t_replacement;

void give_back(const Replacement& replacement) {
  const int saved_errno = errno;
  if (replacement.native != nullptr) real().munmap(replacement.native, replacement.bytes);
  errno = saved_errno;
}

void thread_ended(void*) {
  InRuntime guard;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  // A signal that comes later uses the thread's own stack. Refused where this runs on the replacement: then it stays.
  if (real().sigaltstack(&none, nullptr) != 0) return;
  give_back(t_replacement);
  t_replacement = {};
}

pthread_key_t thread_end_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made = 0;
    pthread_key_create(&made, &thread_ended);
    return made;
  }();
  return key;
}

bool is_managed_stack(const stack_t& stack) {
  return (stack.ss_flags & SS_DISABLE) == 0 && stack.ss_size > 0 &&
         (is_managed(stack.ss_sp) || is_managed(static_cast<const char*>(stack.ss_sp) + stack.ss_size - 1));
}

// Without memory for it, ENOMEM, which sigaltstack() has for stacks that are too small.
bool replace(stack_t* stack, Replacement* made) {
  void* native = real().mmap(nullptr, stack->ss_size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (native == MAP_FAILED) return false;
  pthread_setspecific(thread_end_key(), native);
  *made = {stack->ss_sp, native, stack->ss_size};
  stack->ss_sp = native;
  return true;
}

}  // namespace

int set_alternate_stack(const stack_t* wanted, stack_t* before) {
  const Replacement old = t_replacement;
  stack_t given{}, was{};
  Replacement made;
  if (wanted != nullptr) {
    given = *wanted;
    if (is_managed_stack(given) && !replace(&given, &made)) return -1;
  }
  if (real().sigaltstack(wanted != nullptr ? &given : nullptr, &was) != 0) {
    give_back(made);
    return -1;
  }
  if (before != nullptr) {
    *before = was;
    if (old.native != nullptr && was.ss_sp == old.native) before->ss_sp = old.of_program;
  }
  if (wanted != nullptr) {
    t_replacement = made;
    give_back(old);
  }
  return 0;
}

}  // namespace spw::libc
