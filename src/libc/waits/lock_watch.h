// Who wants to know of the program's locks: durable sections, while a persistent region is open.
//
//     lock, then note_acquired(mutex)        note_releasing(mutex), then unlock
//
// so that of one lock the calls are ordered as its critical sections
// are. Locks that the runtime takes itself are not told of.
// Threads: any. A watch is set once and stays, but in a forked child:
// whose release is not told of would be in a section for ever.
#pragma once

#include <cerrno>

#include "base/atomic.h"
#include "base/in_runtime.h"

namespace spw::libc {

struct LockWatch {
  void (*acquired)(const void* lock);
  void (*releasing)(const void* lock);
};

namespace detail {
inline constinit Atomic<const LockWatch*> lock_watch{nullptr};
}

// nullptr: nobody. What it points to outlives the process's threads.
inline void set_lock_watch(const LockWatch* watch) { detail::lock_watch.store_release(watch); }

inline void note_releasing(const void* lock) {
  const LockWatch* watch = detail::lock_watch.load_acquire();
  if (watch != nullptr && !InRuntime::here()) [[unlikely]]
    watch->releasing(lock);
}
inline void note_acquired(const void* lock) {
  const LockWatch* watch = detail::lock_watch.load_acquire();
  if (watch != nullptr && !InRuntime::here()) [[unlikely]]
    watch->acquired(lock);
}
// `result` is that of a function that acquires. (A robust mutex whose owner has died is acquired.)
inline int noted(int result, const void* lock) {
  if (result == 0 || result == EOWNERDEAD) note_acquired(lock);
  return result;
}

}  // namespace spw::libc
