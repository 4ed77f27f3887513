// A lock of four bytes, for structures that have many: held for a moment mostly, so who finds it held looks again a few
// times before it sleeps.
//
//     kFree -- lock() --> kHeld -- lock() of others --> kAwaited -- unlock() --> kFree, and one who sleeps wakes
//
// Threads: any; unlock() synchronises with the next lock() (release and acquire). Around a fork: who held it before may
// unlock it in the child, where nobody waits.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "platform/futex.h"
#include "platform/spin.h"

namespace spw::platform {

class SmallLock {
 public:
  void lock() {
    uint32_t expected = kFree;
    for (unsigned looks = 0; looks < kLooksMax; ++looks, expected = kFree) {
      if (state_.cas_weak_acquire(expected, kHeld)) return;
      spin_pause();
    }
    // Whoever has slept does not know of others who do.
    while (state_.exchange_acquire(kAwaited) != kFree) futex_wait(state_, kAwaited);
  }
  void unlock() {
    if (state_.exchange_acq_rel(kFree) == kAwaited) futex_wake(state_, 1);
  }

 private:
  enum : uint32_t { kFree, kHeld, kAwaited };
  static constexpr unsigned kLooksMax = 64;

  Atomic<uint32_t> state_{kFree};
};

}  // namespace spw::platform
