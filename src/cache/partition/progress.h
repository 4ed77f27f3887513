// How a thread that needs an asynchronous transfer to finish waits for it without being the partition's owner.
//
// The owner counts every round of completions. A waiter takes a snapshot of the count under the owner's protection,
// looks whether what it needs has happened, and if not waits until the count has moved: one waiter of a partition in
// the I/O queue itself (IoQueue::wait), the others on this word.
//
//      31                 2      1          0
//     +--------------------+-----------+----------+
//     | rounds             | in_queue  | sleepers |
//     +--------------------+-----------+----------+
//
// All in one word, so that no round is missed: a waiter sets its bit only with a CAS that still sees the snapshot, and
// the owner that adds a round sees in the same operation who has to be woken.
// Threads: advance() by the owner; the rest by any thread.
#pragma once

#include "base/atomic.h"
#include "platform/futex.h"
#include "store/store.h"

namespace spw::cache {

class Progress {
 public:
  // To be compared by the waiting functions.
  uint32_t snapshot() const { return word_.load_acquire() & kRounds; }

  // Owner: something finished. Wakes everybody who waits.
  void advance() {
    uint32_t before = word_.fetch_add_acq_rel(kOneRound);
    if (before & (kSleepers | kInQueue)) [[unlikely]]
      wake(before);
  }

  // Waits in `queue` as the only one to do so; false if another does, or the count moved on.
  bool wait_in_queue(uint32_t snapshot, store::IoQueue& queue, uint64_t timeout_ns) {
    uint32_t empty = 0;
    if (!seat_.cas_strong_acquire(empty, 1)) return false;
    // The seat makes this thread the only one to store queue_; whoever sees the bit sees the queue.
    queue_.store_release(&queue);
    uint32_t word = word_.load_relaxed();
    bool seated = false;
    while (!seated && (word & kRounds) == snapshot) seated = word_.cas_weak_acq_rel(word, word | kInQueue);
    if (seated) {
      queue.wait(timeout_ns);
      word_.fetch_and_acq_rel(~kInQueue);
    }
    seat_.store_release(0);
    return seated;
  }

  // Sleeps until the count has moved from `snapshot`, or for timeout_ns.
  void sleep(uint32_t snapshot, uint64_t timeout_ns) {
    uint32_t word = word_.load_relaxed();
    while ((word & kRounds) == snapshot) {
      if ((word & kSleepers) || word_.cas_weak_acq_rel(word, word | kSleepers)) {
        platform::futex_wait(word_, word | kSleepers, timeout_ns);
        return;
      }
    }
  }

  // Owner, before it closes a queue: every snapshot becomes old, and no thread waits in a queue any more.
  void drain_queue_waiters() {
    constexpr uint64_t kPauseNs = 20'000;
    advance();
    while (seat_.load_acquire() != 0) {
      platform::sleep_ns(kPauseNs);
      advance();
    }
  }

 private:
  static constexpr uint32_t kSleepers = 1;
  static constexpr uint32_t kInQueue = 2;
  static constexpr uint32_t kOneRound = 4;
  static constexpr uint32_t kRounds = ~uint32_t{kSleepers | kInQueue};

  void wake(uint32_t before) {
    if (before & kSleepers) {
      word_.fetch_and_acq_rel(~kSleepers);
      platform::futex_wake_all(word_);
    }
    if (before & kInQueue)
      if (store::IoQueue* queue = queue_.load_acquire()) queue->wake();
  }

  Atomic<uint32_t> word_;
  Atomic<uint32_t> seat_;  // 1: a thread is about to wait in queue_, waits there or just did
  Atomic<store::IoQueue*> queue_;
};

}  // namespace spw::cache
