// An atomic whose memory order stands in the name of each operation. There is no operation without an order.
#pragma once

#include <atomic>

namespace spw {

template <class T>
class Atomic {
 public:
  constexpr Atomic() = default;
  constexpr explicit Atomic(T value) : value_(value) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load_relaxed() const { return value_.load(std::memory_order_relaxed); }
  T load_acquire() const { return value_.load(std::memory_order_acquire); }
  T load_seq_cst() const { return value_.load(std::memory_order_seq_cst); }
  void store_relaxed(T v) { value_.store(v, std::memory_order_relaxed); }
  void store_release(T v) { value_.store(v, std::memory_order_release); }
  void store_seq_cst(T v) { value_.store(v, std::memory_order_seq_cst); }
  T exchange_relaxed(T v) { return value_.exchange(v, std::memory_order_relaxed); }
  T exchange_acquire(T v) { return value_.exchange(v, std::memory_order_acquire); }
  T exchange_acq_rel(T v) { return value_.exchange(v, std::memory_order_acq_rel); }
  T fetch_add_relaxed(T v) { return value_.fetch_add(v, std::memory_order_relaxed); }
  T fetch_add_acq_rel(T v) { return value_.fetch_add(v, std::memory_order_acq_rel); }
  T fetch_add_seq_cst(T v) { return value_.fetch_add(v, std::memory_order_seq_cst); }
  T fetch_sub_relaxed(T v) { return value_.fetch_sub(v, std::memory_order_relaxed); }
  T fetch_sub_acq_rel(T v) { return value_.fetch_sub(v, std::memory_order_acq_rel); }
  T fetch_or_relaxed(T v) { return value_.fetch_or(v, std::memory_order_relaxed); }
  T fetch_or_acq_rel(T v) { return value_.fetch_or(v, std::memory_order_acq_rel); }
  T fetch_or_seq_cst(T v) { return value_.fetch_or(v, std::memory_order_seq_cst); }
  T fetch_and_relaxed(T v) { return value_.fetch_and(v, std::memory_order_relaxed); }
  T fetch_and_acq_rel(T v) { return value_.fetch_and(v, std::memory_order_acq_rel); }
  T fetch_and_seq_cst(T v) { return value_.fetch_and(v, std::memory_order_seq_cst); }

  // Weak: may fail spuriously. On failure `expected` holds what was read, with relaxed order.
  bool cas_weak_acquire(T& expected, T desired) {
    return value_.compare_exchange_weak(expected, desired, std::memory_order_acquire,
                                        std::memory_order_relaxed);
  }
  bool cas_weak_release(T& expected, T desired) {
    return value_.compare_exchange_weak(expected, desired, std::memory_order_release,
                                        std::memory_order_relaxed);
  }
  bool cas_weak_acq_rel(T& expected, T desired) {
    return value_.compare_exchange_weak(expected, desired, std::memory_order_acq_rel,
                                        std::memory_order_relaxed);
  }
  bool cas_strong_acquire(T& expected, T desired) {
    return value_.compare_exchange_strong(expected, desired, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  bool cas_strong_acq_rel(T& expected, T desired) {
    return value_.compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                          std::memory_order_relaxed);
  }
  bool cas_strong_seq_cst(T& expected, T desired) {
    return value_.compare_exchange_strong(expected, desired, std::memory_order_seq_cst,
                                          std::memory_order_relaxed);
  }
  // As load_seq_cst() when it fails: for a failure that is an answer, not another attempt.
  bool cas_weak_seq_cst(T& expected, T desired) {
    return value_.compare_exchange_weak(expected, desired, std::memory_order_seq_cst,
                                        std::memory_order_seq_cst);
  }

  // For futex only: the word itself.
  T* address() { return reinterpret_cast<T*>(&value_); }

 private:
  std::atomic<T> value_{};
};

// Between a store and a load of something else: of two threads that do so, each with what the other loads, one sees
// what the other has stored.
inline void fence_seq_cst() { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace spw
