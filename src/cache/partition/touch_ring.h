// How a policy that keeps an order learns of uses in which the owner has no part. A client that ends a
// use (it takes a reference count from 1 to 0) notes the frame in a ring of its own for the partition;
// the owner empties the rings when one is half full, and before it asks the policy for victims.
// (TriCache 3.2, the asynchronous messages of the hybrid lock-free delegation. There the policy holds
// only what has no references, so that 0 -> 1 must be told too, and nothing may be lost; here the pin
// word alone says what can be evicted, and a note only moves a frame in the policy's order.)
//
// A ring never makes its client wait: the newest note overwrites the oldest, which says least about what was used last.
// A note is a hint. It may come when the frame is on offer, is empty or holds another block; it may be lost (counted),
// and one that is overwritten while the owner reads may be seen twice. Policies that do without (CLOCK) have no rings,
// and their clients pay one test for it.
//
// Invariants: at any time head_ <= tail_ (both count notes ever, modulo 2^32); a note is a frame of the partition
// Threads: push() by the ring's client, drain() by the partition's owner, TouchRings::add() by any thread.
// Ordering: tail_ is stored with release after the note, and the owner's acquire pairs with it: it reads every note it
//   knows of, or a newer one. Notes are relaxed, as a newer one is as good. ring_bell() and its test are relaxed: a
//   bell seen before its note is answered by the next.
// Lifetime: a client and with it its rings last as long as the cache; rings are never taken off the list, and a client
//   that is opened again goes on with them. Limits: kNotes a ring; kNotes * 4 + 128 bytes each.
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace spw::cache {

class TouchRing {
 public:
  static constexpr uint32_t kNotes = 64;

  // `frame`: its index in the partition. True when the owner should come by soon.
  bool push(uint32_t frame) {
    uint32_t tail = tail_.load_relaxed();
    notes_[tail % kNotes].store_relaxed(frame);
    tail_.store_release(tail + 1);
    return tail % (kNotes / 2) == kNotes / 2 - 1;
  }
  // Calls visit(frame) for what has been noted since the last time, the oldest first; returns how many notes were lost.
  template <class Visit>
  uint32_t drain(Visit visit) {
    uint32_t tail = tail_.load_acquire();
    uint32_t noted = tail - head_;
    uint32_t lost = noted > kNotes ? noted - kNotes : 0;
    for (head_ += lost; head_ != tail; ++head_) visit(notes_[head_ % kNotes].load_relaxed());
    return lost;
  }

 private:
  friend class TouchRings;

  TouchRing* next_ = nullptr;
  uint32_t head_ = 0;                  // the owner's
  alignas(64) Atomic<uint32_t> tail_;  // the client's from here on
  Atomic<uint32_t> notes_[kNotes];
};

// The rings of all clients for one partition.
class TouchRings {
 public:
  // Release: pairs with the acquire in drain(), which then sees the ring whole.
  void add(TouchRing& ring) {
    TouchRing* first = first_.load_relaxed();
    do ring.next_ = first;
    while (!first_.cas_weak_release(first, &ring));
  }
  // Client: a ring is half full. Owner: whether one is.
  void ring_bell() { bell_.store_relaxed(true); }
  bool bell_rang() const { return bell_.load_relaxed(); }
  // Owner. Returns how many notes were lost.
  template <class Visit>
  uint32_t drain(Visit visit) {
    bell_.store_relaxed(false);
    uint32_t lost = 0;
    for (TouchRing* ring = first_.load_acquire(); ring; ring = ring->next_) lost += ring->drain(visit);
    return lost;
  }

 private:
  Atomic<TouchRing*> first_;
  Atomic<bool> bell_;
};

}  // namespace spw::cache
