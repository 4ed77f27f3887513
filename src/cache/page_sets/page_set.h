// A page set: eight frames, the pin words that say what is in them, and how often that was used.
//
//   byte    0  64      68       72     76      78         79 80            392      512
//          +--+--------+--------+------+-------+----------+--+-------------+--------+
//          |words: 8   |lock    |strayed|reach |scheduled |  | frequencies | unused |
//          +-----------+--------+-------+------+----------+--+-------------+--------+
//   \______________ all that a hit reads and changes: 128 bytes _________/
//
//   lock       who holds it changes which blocks the set has: he takes slots, evicts, and inserts blocks whose home it is
//   strayed    blocks whose home is this set and that are in another one, since all eight here were pinned
//   reach      how far behind this set they are at most, as long as there are any
//   scheduled  it waits for the owner to write dirty blocks of it
//
// Threads: any. Hits change a word by compare-and-swap and a byte of frequency, without the lock.
#pragma once

#include "base/atomic.h"
#include "cache/block_table/pin_word.h"
#include "cache/page_sets/set_frequencies.h"
#include "platform/futex.h"
#include "platform/spin.h"

namespace spw::cache {

// Held for some dozens of instructions, and in the mapped engine for the call that takes a victim's memory away.
class SetLock {
 public:
  void lock() {
    for (int i = 0; i < kSpins; ++i) {
      if (try_lock()) return;
      platform::spin_pause();
    }
    while (word_.exchange_acquire(kAwaited) != kFree) platform::futex_wait(word_, kAwaited);
  }
  bool try_lock() {
    uint32_t free = kFree;
    return word_.cas_strong_acquire(free, kHeld);
  }
  void unlock() {
    if (word_.exchange_acq_rel(kFree) == kAwaited) platform::futex_wake(word_, 1);
  }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kAwaited = 2;
  static constexpr int kSpins = 100;
  Atomic<uint32_t> word_;
};

inline constexpr unsigned kPageSetShift = 9;

struct alignas(kCacheLineBytes) PageSet {
  AtomicPinWord words[kBlocksASet];
  SetLock lock;
  Atomic<uint32_t> strayed;
  Atomic<uint32_t> reach;
  Atomic<uint8_t> is_scheduled;
  SetFrequencies frequencies;
};
// The paper's bound: "the metadata ... fits within 4 128-byte cache lines". No two sets share one.
static_assert(sizeof(PageSet) == 1 << kPageSetShift && sizeof(PageSet) <= 4 * kCacheLineBytes);
static_assert(offsetof(PageSet, frequencies) + kBlocksASet <= kCacheLineBytes);

}  // namespace spw::cache
