#include "platform/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

#include "base/check.h"
#include "platform/time.h"

namespace spw::platform {

FutexWait futex_wait(Atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ns) {
  timespec timeout{static_cast<time_t>(timeout_ns / kNsPerSecond),
                   static_cast<long>(timeout_ns % kNsPerSecond)};
  timespec* limit = timeout_ns == kNoTimeout ? nullptr : &timeout;
  if (::syscall(SYS_futex, word.address(), FUTEX_WAIT_PRIVATE, expected, limit, nullptr, 0) == 0)
    return FutexWait::kReturned;
  SPW_CHECK(errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
  return errno == ETIMEDOUT ? FutexWait::kTimedOut : FutexWait::kReturned;
}

void futex_wake(Atomic<uint32_t>& word, int count) {
  ::syscall(SYS_futex, word.address(), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

void futex_wake_all(Atomic<uint32_t>& word) { futex_wake(word, INT_MAX); }

}  // namespace spw::platform
