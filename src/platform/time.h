// The monotonic clock.
//
// Threads: any. Limits: 2^64 ns since boot, 584 years.
#pragma once

#include <cstdint>

namespace spw::platform {

// "No limit", wherever a timeout in ns is taken.
inline constexpr uint64_t kNoTimeout = UINT64_MAX;

inline constexpr uint64_t kNsPerSecond = 1'000'000'000;

uint64_t monotonic_ns();
// Processor time of the whole process so far.
uint64_t process_cpu_ns();

// Sleeps for at least `duration_ns`, signals notwithstanding.
void sleep_ns(uint64_t duration_ns);

// now + timeout, kNoTimeout when either has no end.
constexpr uint64_t deadline_after(uint64_t now_ns, uint64_t timeout_ns) {
  return timeout_ns >= kNoTimeout - now_ns ? kNoTimeout : now_ns + timeout_ns;
}

}  // namespace spw::platform
