// The combiner lock of a partition, and the requests of those who do not hold it, in one word.
//
//      63                                 1     0
//     +------------------------------------+------+
//     | last posted request, or none       | held |
//     +------------------------------------+------+
//
//   from           to                 who     operation and order
//   free           held               client  CAS acquire: pairs with the release below; the owner's plain data is seen
//   held, list     held, me -> list   client  CAS release: pairs with take_all, so the holder sees the request
//   held, list     held               holder  exchange acquire (take_all)
//   held           free               holder  CAS release; fails if a request was posted, which is then served first
//
// So there is no moment at which a request is posted and nobody is bound to serve it.
// Threads: any. Limits: requests are 64-byte aligned, so bit 0 of their address is free.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "cache/partition/request.h"

namespace spw::cache {

class CombinerLock {
 public:
  // True: the caller holds the lock and serves `request` itself. False: it is posted, and the holder serves it.
  bool take_or_post(Request& request) {
    uintptr_t word = word_.load_relaxed();
    for (;;) {
      if (word == kFree) {
        if (word_.cas_weak_acquire(word, kHeld)) return true;
        continue;
      }
      request.next = reinterpret_cast<Request*>(word & ~kHeld);
      request.state.store_relaxed(kPosted);
      if (word_.cas_weak_release(word, reinterpret_cast<uintptr_t>(&request) | kHeld)) return false;
    }
  }
  // True: the caller holds the combiner lock. False: somebody else does; nothing is posted.
  bool try_take() {
    uintptr_t word = kFree;
    return word_.cas_strong_acquire(word, kHeld);
  }
  // Holder: gives the combiner lock up, unless requests are posted.
  bool try_give_up() {
    uintptr_t held = kHeld;
    return word_.cas_strong_acq_rel(held, kFree);
  }
  // Holder: all posted requests, last first.
  Request* take_all() { return reinterpret_cast<Request*>(word_.exchange_acquire(kHeld) & ~kHeld); }

 private:
  static constexpr uintptr_t kFree = 0, kHeld = 1;
  Atomic<uintptr_t> word_;
};

}  // namespace spw::cache
