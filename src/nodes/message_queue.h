// A bounded queue of messages between threads: what goes in is copied, and is all that sender and receiver share.
//
// Each cell has a turn, which says whose it is next: turn = position: free for the sender that takes this position;
// turn = position + 1: full, for the receiver (the bounded queue of D. Vyukov).
// Threads: push() by any, pop() by one; the receiver may sleep until something comes. Ordering: a turn's release /
//   acquire pairs order the message's bytes.
// Limits: `capacity` messages, a power of two.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/atomic.h"
#include "base/check.h"
#include "base/units.h"
#include "platform/futex.h"

namespace spw::nodes {

template <class Message>
class MessageQueue {
  static_assert(std::is_trivially_copyable_v<Message>);

 public:
  explicit MessageQueue(uint64_t capacity) : mask_(capacity - 1), cells_(std::make_unique<Cell[]>(capacity)) {
    SPW_CHECK(is_power_of_two(capacity));
    for (uint64_t i = 0; i < capacity; ++i) cells_[i].turn.store_relaxed(i);
  }

  // False: it is full.
  bool push(const Message& message) {
    uint64_t position = tail_.load_relaxed();
    for (;;) {
      Cell& cell = cells_[position & mask_];
      const auto ahead = static_cast<int64_t>(cell.turn.load_acquire() - position);
      if (ahead < 0) return false;
      if (ahead > 0) {
        position = tail_.load_relaxed();
      } else if (tail_.cas_weak_acquire(position, position + 1)) {
        cell.message = message;
        cell.turn.store_release(position + 1);
        break;
      }
    }
    pushed_.fetch_add_acq_rel(1);
    if (asleep_.load_seq_cst() != 0) platform::futex_wake(pushed_, 1);
    return true;
  }

  bool pop(Message* out) {
    Cell& cell = cells_[head_ & mask_];
    if (cell.turn.load_acquire() != head_ + 1) return false;
    *out = cell.message;
    cell.turn.store_release(head_ + mask_ + 1);
    ++head_;
    return true;
  }

  // Returns when something may have come, or somebody woke the receiver.
  void wait(uint64_t timeout_ns) {
    const uint32_t seen = pushed_.load_acquire();
    asleep_.store_seq_cst(1);
    const bool is_empty = cells_[head_ & mask_].turn.load_seq_cst() != head_ + 1;
    if (is_empty && pushed_.load_seq_cst() == seen) platform::futex_wait(pushed_, seen, timeout_ns);
    asleep_.store_seq_cst(0);
  }
  void wake() {
    pushed_.fetch_add_acq_rel(1);
    platform::futex_wake(pushed_, 1);
  }

 private:
  struct Cell {
    Atomic<uint64_t> turn;
    Message message;
  };
  const uint64_t mask_;
  std::unique_ptr<Cell[]> cells_;
  alignas(64) Atomic<uint64_t> tail_;
  alignas(64) uint64_t head_ = 0;  // the receiver's
  Atomic<uint32_t> pushed_;        // a count of pushes, to sleep on
  Atomic<uint32_t> asleep_;
};

}  // namespace spw::nodes
