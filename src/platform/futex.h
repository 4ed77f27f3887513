// Sleeping until a 32-bit word changes, within this process.
//
// Ordering: a futex orders nothing by itself; the acquire load after a wait pairs with the release store
// before a wake. A waker changes the word first and wakes second; then no sleeper is missed, because the
// kernel compares the word with `expected` under the lock the waker takes. Threads: any. Lifetime: the word
// outlives its sleepers.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "platform/time.h"

namespace spw::platform {

enum class FutexWait : uint8_t {
  kReturned,  // woken, or the word was not `expected`, or a signal came: look at the word again
  kTimedOut,
};

// Sleeps while word == expected, until woken or timeout_ns passed.
FutexWait futex_wait(Atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ns = kNoTimeout);

// Wakes up to `count` sleepers. Async-signal-safe.
void futex_wake(Atomic<uint32_t>& word, int count);
void futex_wake_all(Atomic<uint32_t>& word);

}  // namespace spw::platform
