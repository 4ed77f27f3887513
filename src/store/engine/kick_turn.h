// Who starts what was issued: one thread at a time, and none waits for another. A thread that comes while another is at it leaves it to that
// one, which looks again.
//
//   calls_: 0 -> 1    it is this thread's turn (fetch_add acquire: the last turn's work is seen)
//           n -> n+1  another thread's turn, which will see n+1
//           n -> 0    the turn is over: nobody has come since it began its last round (CAS release)
//
// Threads: any.
#pragma once

#include "base/atomic.h"

namespace spw::store {

class KickTurn {
 public:
  // `start` starts all that was issued before the call, in this thread or in the one whose turn it is.
  template <class Start>
  void take(Start start) {
    if (calls_.fetch_add_acq_rel(1) > 0) return;
    uint32_t seen;
    do {
      seen = calls_.load_acquire();
      start();
    } while (!calls_.cas_strong_acq_rel(seen, 0));
  }

 private:
  Atomic<uint32_t> calls_{0};
};

}  // namespace spw::store
