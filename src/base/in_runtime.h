// While one lives, its thread is in the runtime: what it allocates is the runtime's
// own (interposed allocation functions hand out native memory), and handlers of the
// program's signals wait until it is out again (libc/signals/handlers.h).
//
// Whoever enters the runtime from the program's code, and every thread of the runtime, holds one: memory that the
// runtime works with must never be memory that the runtime has to bring in, and whoever holds what only one can have (a
// partition's combiner lock, a lock, a client) must not run code of the program, which may want it.
//
// Threads: each has its own depth and its own wish, which signal handlers of that thread change,
// too. A handler leaves the depth as it found it, so it sees 0 exactly where the thread holds
// nothing; a wish that it leaves at a depth above 0 is seen by the exit that ends it. The fences
// keep what the runtime does between the two changes of the depth, for a handler of the same thread.
//
// The kernel reads the selector of a thread that has its system calls dispatched (libc/system_calls/dispatch.h) at each
// of them: those made inside of the runtime it lets pass, those of the program's code it sends back. It is stored by
// every thread, dispatched or not: a store is less than a look.
// Invariant: depth > 0  =>  selector == kPasses. (Not the other way round: a call that is run once more has it set
// until the next exit.)
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace spw {

namespace detail {
struct InRuntimeState {
  // The kernel's SYSCALL_DISPATCH_FILTER_ALLOW and _BLOCK.
  static constexpr uint8_t kPasses = 0, kIsSentBack = 1;

  Atomic<unsigned> depth;
  Atomic<uint8_t> selector;
  Atomic<bool> is_dispatched;  // the kernel was asked to, whatever it said
  Atomic<void (*)()> at_exit;
};
extern constinit thread_local InRuntimeState in_runtime __attribute__((tls_model("initial-exec")));
void leave_runtime();
}  // namespace detail

class InRuntime {
 public:
  InRuntime() {
    detail::in_runtime.depth.store_relaxed(detail::in_runtime.depth.load_relaxed() + 1);
    detail::in_runtime.selector.store_relaxed(detail::InRuntimeState::kPasses);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~InRuntime() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const unsigned left = detail::in_runtime.depth.load_relaxed() - 1;
    detail::in_runtime.depth.store_relaxed(left);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (left != 0) return;
    detail::in_runtime.selector.store_relaxed(detail::InRuntimeState::kIsSentBack);
    if (detail::in_runtime.at_exit.load_relaxed() != nullptr) [[unlikely]]
      detail::leave_runtime();
  }
  InRuntime(const InRuntime&) = delete;
  InRuntime& operator=(const InRuntime&) = delete;

  static bool here() { return detail::in_runtime.depth.load_relaxed() != 0; }
  // `call` is called once, by this thread, as soon as it is out: by the next exit to the depth 0. It may run code of
  // the program. Async-signal-safe.
  static void ask_at_exit(void (*call)()) { detail::in_runtime.at_exit.store_relaxed(call); }
};

}  // namespace spw
