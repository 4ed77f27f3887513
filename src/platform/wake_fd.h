// Sleeping until one of two things: a descriptor becomes readable, or another thread calls wake().
//
// Threads: wait() by one thread at a time, wake() by any. A wake() with no waiter ends the next wait().
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "platform/file.h"
#include "platform/time.h"

namespace spw::platform {

// Until one of the descriptors is readable, timeout_ns passed, or a signal came. At most kWaitedMax of them.
inline constexpr size_t kWaitedMax = 72;
void wait_readable(std::span<const int> fds, uint64_t timeout_ns);

class WakeFd {
 public:
  static Result<WakeFd> create();
  WakeFd() = default;

  // Until `fd` is readable, wake() was called, timeout_ns passed, or a signal came. Takes the wake-ups that are there.
  void wait(int fd, uint64_t timeout_ns);
  void wake();

  int fd() const { return event_.fd(); }
  // Makes fd() unreadable until the next wake() (or the next event of the kernel's, where it was told to signal there).
  void clear();

 private:
  File event_;
};

}  // namespace spw::platform
