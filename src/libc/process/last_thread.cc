#include "libc/process/last_thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libc/real.h"
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
  char text[512];
  const int fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC));
  if (fd < 0) return {};
  const long got = ::syscall(SYS_read, fd, text, sizeof text - 1);
  ::syscall(SYS_close, fd);
  if (got <= 0) return {};
  text[got] = '\0';
  const char* after_name = strrchr(text, ')');
  char state = 0;
  unsigned threads = 0;
  // proc(5): the third field, and the twentieth.
  if (after_name == nullptr ||
      sscanf(after_name + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %u", &state,
             &threads) != 2)
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
