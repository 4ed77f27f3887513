// What happened last to blocks, thread by thread: for who looks at a program that does something strange
// (`spillway top PID --trace`, `spw trace` in gdb).
//
// A thread notes what it did in a ring of its own, a part of its counter block (counters.h), so nothing is shared and
// nobody waits; who reads puts the threads' together in the order of time. It is always on: a miss notes two or three
// entries, each the price of a look at the clock.
//
// Entry n of a thread is at n % kEntries. Its stamp is 0 while it is written and n + 1 when it is whole.
// Threads: one writes, any reads at any time. A signal handler may note something between two steps of its thread's own
//   note(): one of the two entries is lost then.
// Ordering: each word is stored with release, the stamp's 0 before and its n + 1 after the others, and loaded with
//   acquire; a reader that finds the same stamp, not 0, before and after the other words has a whole entry.
// Limits: kEntries of a thread, kTraceValueMax. Lifetime: the counter block's.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/atomic.h"

namespace spw::telemetry {

enum class TraceEvent : uint8_t {
  kNothing,
  kMissed,   // the block is there; value: ns since it was asked for
  kEvicted,  // the block has left its frame
  kWritten,  // and the blocks behind it; value: how many in all
  kFailed,   // a request that begins with the block, to be read or written; value: errno
  kWaits,    // for a frame: none can be had for the block
  kLimit,    // value: so many frames may be in use from now on
  kRefused,  // a fault: the block is nobody's, or not to be stored to
  kWatched,  // from now on faults are served (mapped engine)
  kWaited,   // for a frame; the thread has one, or has given up
};

inline constexpr uint64_t kTraceValueMax = (uint64_t{1} << 56) - 1;  // what is more counts as this
inline constexpr uint64_t kTraceNoBlock = ~uint64_t{0};

struct TraceEntry {
  TraceEvent event = TraceEvent::kNothing;
  uint64_t at_ns = 0;  // CLOCK_MONOTONIC
  uint64_t block = 0;  // kTraceNoBlock: it concerns none
  uint64_t value = 0;
  uint64_t number = 0;  // of this thread's entries
};

// "missed, in 7.2 us", without block and time.
std::string trace_text(const TraceEntry& entry);

class TraceRing {
 public:
  static constexpr uint64_t kEntries = 128;

  void note(TraceEvent event, uint64_t block, uint64_t value, uint64_t at_ns) {
    const uint64_t n = next_.load_relaxed();
    next_.store_relaxed(n + 1);
    Slot& slot = slots_[n % kEntries];
    slot.stamp.store_relaxed(0);
    slot.at_ns.store_release(at_ns);
    slot.block.store_release(block);
    slot.what.store_release(static_cast<uint64_t>(event) << 56 |
                            (value < kTraceValueMax ? value : kTraceValueMax));
    slot.stamp.store_release(n + 1);
  }
  // Adds those that are whole, from number `from` on, in no certain order.
  void read(uint64_t from, std::vector<TraceEntry>& into) const;

 private:
  struct Slot {
    Atomic<uint64_t> stamp, at_ns, block, what;
  };
  Atomic<uint64_t> next_;
  std::array<Slot, kEntries> slots_;
};

}  // namespace spw::telemetry
