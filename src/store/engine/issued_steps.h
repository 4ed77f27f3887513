// Steps on their way from issue() to the kernel. Whoever kicks starts them: one thread at a time, and none waits for
// another. A thread that comes while another is at it leaves them to that one, which looks again.
//
//   kicks_: 0 -> 1    it is this thread's turn (fetch_add acquire: the last turn's work is seen)
//           n -> n+1  another thread's turn, which will see n+1
//           n -> 0    the turn is over: nobody has come since it began its last round (CAS release)
//
// Threads: add() by one, kick() by any. Limits: `depth` steps that are not started yet.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "base/atomic.h"

namespace spw::store {

template <class Step>
class IssuedSteps {
 public:
  explicit IssuedSteps(size_t depth) {
    issued_.reserve(depth);
    starting_.reserve(depth);
  }

  void add(std::span<const Step> steps) {
    {
      std::lock_guard lock(mutex_);
      issued_.insert(issued_.end(), steps.begin(), steps.end());
    }
    has_some_.store_release(true);
  }
  // Some may be left to be started, and nobody be at it.
  bool has_some() const { return has_some_.load_acquire(); }
  // Has all that were added before started, by start(std::span<Step>) in this thread or in the one whose turn it is.
  template <class Start>
  void kick(Start start) {
    if (kicks_.fetch_add_acq_rel(1) > 0) return;
    uint32_t seen;
    do {
      seen = kicks_.load_acquire();
      has_some_.store_relaxed(false);
      {
        std::lock_guard lock(mutex_);
        starting_.swap(issued_);
      }
      start(std::span<Step>(starting_));
      starting_.clear();
    } while (!kicks_.cas_strong_acq_rel(seen, 0));
  }

 private:
  std::mutex mutex_;  // of issued_
  std::vector<Step> issued_;
  Atomic<bool> has_some_{false};  // set after issued_ is filled, cleared before it is emptied
  Atomic<uint32_t> kicks_{0};
  std::vector<Step> starting_;  // of the thread whose turn it is
};

}  // namespace spw::store
