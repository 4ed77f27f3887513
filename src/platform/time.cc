#include "platform/time.h"

#include <cerrno>
#include <ctime>

#include "platform/uncancelled.h"

namespace spw::platform {

namespace {
uint64_t read_clock(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}
}  // namespace

uint64_t monotonic_ns() { return read_clock(CLOCK_MONOTONIC); }
uint64_t process_cpu_ns() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

void sleep_ns(uint64_t duration_ns) {
  Uncancelled guard;
  timespec rest{static_cast<time_t>(duration_ns / kNsPerSecond),
                static_cast<long>(duration_ns % kNsPerSecond)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest) == EINTR) {
  }
}

}  // namespace spw::platform
