// New threads, system calls by number, and what is to be called at the end, under their ordinary names.
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <threads.h>
#include <unistd.h>

#include "libc/entry.h"
#include "libc/process/last_thread.h"
#include "libc/process/thread_stacks.h"
#include "libc/real.h"
#include "libc/system_calls/dispatch.h"
#include "libc/system_calls/system_calls.h"
#include "platform/thread.h"

using namespace spw::libc;

// Of this library, as the compiler hands it to __cxa_atexit().
extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;

namespace {

// What a thread begins with. One of the program has its system calls dispatched from then on, if the process's are.
// One that is started inside of the runtime is the runtime's, or of a library that the runtime has loaded (librados),
// and is inside of it to its end.
template <class Result>
struct Start {
  Result (*body)(void*);
  void* argument;
  bool is_inside;

  // Left by exceptions and cancellation, too, and needs nothing of them.
  static Result run(void* start) {
    const Start its = *static_cast<Start*>(start);
    if (its.is_inside) {
      spw::InRuntime guard;
      spw::platform::Thread::Running running;
      libc_free(start);
      return its.body(its.argument);
    }
    libc_free(start);
    dispatch_if_wanted();
    return its.body(its.argument);
  }
};

template <class Result>
Start<Result>* start_of(Result (*body)(void*), void* argument) {
  void* room = libc_malloc(sizeof(Start<Result>));
  return room == nullptr ? nullptr : new (room) Start<Result>{body, argument, spw::InRuntime::here()};
}

// Whether the thread has anything to begin with.
bool begins_with_something() { return may_dispatch() || spw::InRuntime::here(); }

}  // namespace

SPW_ENTRY int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                             void* argument) noexcept {
  const ThreadStack stack = stack_of(attributes);
  if (!begins_with_something() && !stack.is_managed()) [[likely]]
    return real().pthread_create(thread, attributes, body, argument);
  auto* start = start_of(body, argument);
  if (start == nullptr) return EAGAIN;
  if (stack.is_managed()) keep_in_memory(stack);
  const int error = real().pthread_create(thread, attributes, &Start<void*>::run, start);
  if (error != 0) libc_free(start);
  if (error != 0 && stack.is_managed()) release(stack);
  return error;
}
SPW_ENTRY int pthread_join(pthread_t thread, void** result) {
  const ThreadStack stack = stack_of(thread);
  const int error = real().pthread_join(thread, result);
  if (error == 0 && stack.is_managed()) release(stack);
  return error;
}
SPW_ENTRY int thrd_create(thrd_t* thread, thrd_start_t body, void* argument) {
  if (!begins_with_something()) return real().thrd_create(thread, body, argument);
  auto* start = start_of(body, argument);
  if (start == nullptr) return thrd_nomem;
  const int result = real().thrd_create(thread, &Start<int>::run, start);
  if (result != thrd_success) libc_free(start);
  return result;
}
SPW_ENTRY void pthread_exit(void* result) {
  watch_for_last_thread();
  real().pthread_exit(result);
  __builtin_unreachable();
}
SPW_ENTRY void thrd_exit(int result) {
  watch_for_last_thread();
  real().thrd_exit(result);
  __builtin_unreachable();
}

// A library that the runtime has loaded (librados) serves until the process is gone: the program's own destructors,
// which come later, may need what is on the store. So what such a library has destroyed at the end is not.
SPW_ENTRY int __cxa_atexit(void (*function)(void*), void* argument, void* library) noexcept {
  if (spw::InRuntime::here() && library != &__dso_handle) return 0;
  return real().__cxa_atexit(function, argument, library);
}

SPW_ENTRY long syscall(long number, ...) noexcept {
  CallArguments given;
  va_list list;
  va_start(list, number);
  for (long& argument : given) argument = va_arg(list, long);
  va_end(list);
  // The runtime's own, which may have little stack (fault_stack.h) and less time.
  if (spw::InRuntime::here()) [[likely]]
    return real().syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
  return system_call(number, given);
}
