// A lock for those who write to some blocks, and a version by which those who read them see that nobody did meanwhile:
// a sequence lock whose writers sleep while another one is inside, since that one may wait for the disk.
//
//   version_: odd while a writer is inside
//
//     from   to        who, by                   order
//     even   odd       a writer, enter()         acquire; the fence behind it has readers see "odd" before any byte of
//                                                the write (pairs with the fence in read())
//     odd    even      that writer, leave()      seq_cst: release for whoever enters or reads next, and before its look
//                                                at sleepers_
//     A writer that finds it odd counts itself in sleepers_, looks at version_ again (seq_cst both), and sleeps while
//     it is the same: either it sees the other one leave, or that one sees it and wakes it.
//
// Threads: any; a thread does not enter twice. Who is inside may sleep. Not fair.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "platform/futex.h"
#include "platform/spin.h"

namespace spw::files {

class alignas(64) WriteStripe {
 public:
  void enter() {
    uint32_t version = version_.load_relaxed();
    if (version % 2 != 0 || !version_.cas_strong_acquire(version, version + 1)) [[unlikely]]
      enter_slowly();
    std::atomic_thread_fence(std::memory_order_release);
  }
  void leave() {
    version_.fetch_add_seq_cst(1);
    if (sleepers_.load_seq_cst() > 0) [[unlikely]]
      platform::futex_wake(version_, 1);
  }

  // Calls copy(), which only reads, and says whether no writer was inside meanwhile. False, too, if it did not call it.
  template <class Copy>
  bool read(Copy copy) const {
    const uint32_t version = version_.load_acquire();
    if (version % 2 != 0) return false;
    copy();
    std::atomic_thread_fence(std::memory_order_acquire);
    return version_.load_relaxed() == version;
  }

 private:
  static constexpr int kSpins = 64;

  void enter_slowly() {
    for (;;) {
      for (int spin = 0; spin < kSpins; ++spin) {
        uint32_t version = version_.load_relaxed();
        if (version % 2 == 0 && version_.cas_strong_acquire(version, version + 1)) return;
        platform::spin_pause();
      }
      sleepers_.fetch_add_seq_cst(1);
      const uint32_t version = version_.load_seq_cst();
      if (version % 2 != 0) platform::futex_wait(version_, version);
      sleepers_.fetch_sub_relaxed(1);
    }
  }

  Atomic<uint32_t> version_{0};
  Atomic<uint32_t> sleepers_{0};
};

// A writer is inside while this lives.
class Writing {
 public:
  explicit Writing(WriteStripe& stripe) : stripe_(stripe) { stripe_.enter(); }
  ~Writing() { stripe_.leave(); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  WriteStripe& stripe_;
};

}  // namespace spw::files
