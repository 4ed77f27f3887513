// Stacks for handlers of signals: each is kStackBytes of native memory above a page without access, so that too deep a
// call ends the process where it happens instead of in somebody's data.
//
// Invariant: a stack has one owner, or lies in one slot of the pool, which keeps kPooledMax for later.
// Threads: any. Async-signal-safe; nobody waits. Lifetime: what is taken may outlive the pool.
#pragma once

#include <cstddef>

#include "base/atomic.h"

namespace spw::platform {

class HandlerStacks {
 public:
  static constexpr size_t kStackBytes = 64 * 1024;
  static constexpr size_t kPooledMax = 64;

  constexpr HandlerStacks() = default;
  ~HandlerStacks();
  HandlerStacks(const HandlerStacks&) = delete;
  HandlerStacks& operator=(const HandlerStacks&) = delete;

  // Its lowest byte; nullptr: there is no memory.
  std::byte* take();
  void give_back(std::byte* stack);

 private:
  Atomic<std::byte*>
      pooled_[kPooledMax];  // exchanged as a whole: release by who gives back, acquire by who takes
};

}  // namespace spw::platform
