#include "libc/process/last_thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "base/in_runtime.h"
#include "libc/real.h"
#include "platform/proc_text.h"
#include "platform/thread.h"
#include "platform/time.h"

namespace spw::libc {

namespace {

constexpr uint64_t kLookNs = 5'000'000;

// Of the process's first thread.
struct First {
  bool has_ended = false;
  uint32_t threads = 0;  // of the process, with it
};

First look_at_first() {
  InRuntime guard;
  auto text = platform::read_small_file("/proc/self/stat");
  const size_t name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return {};
  char state = 0;
  unsigned threads = 0;
  // proc(5): the third field, and the twentieth.
  if (sscanf(text->c_str() + name_end + 1,
             " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %u", &state, &threads) != 2)
    return {};
  return {state == 'Z', threads};
}

// The first thread and this one are no others of the program.
void* watch(void*) {
  while (true) {
    const uint32_t others = platform::Thread::running() + 2;
    const First first = look_at_first();
    if (first.has_ended && first.threads <= others) exit(0);
    platform::sleep_ns(kLookNs);
  }
}

}  // namespace

void watch_for_last_thread() {
  if (::syscall(SYS_gettid) != getpid()) return;
  pthread_attr_t detached;
  if (pthread_attr_init(&detached) != 0) return;
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_t watcher;
  (void)real().pthread_create(&watcher, &detached, &watch, nullptr);
  pthread_attr_destroy(&detached);
}

}  // namespace spw::libc
