// A node of the page index: a state word, dirty tags, and 64 slots. page_index.h says how they work together.
//
// The state word:
//
//      63      34 33    32 31       0
//     +----------+--------+----------+
//     |    0     | state  |  count   |
//     +----------+--------+----------+
//
//   count   slots that hold an entry or a LIVE child, and reservations: operations that are about to fill a slot, or have
//           emptied one and not counted it yet
//   state   LIVE: may be filled. DEAD: logically deleted; in its parent's slot still, and can be revived.
//           UNLINKED: on its way out, for good
//
// Transitions. I: who inserts; E: who takes the last count away (of
// an entry, a child or a reservation); R: who reclaims.
//
//   from             to                who  operation and order
//   free             LIVE, count 1     I    store, before the CAS of the parent's slot publishes it
//   LIVE             count + n         I    CAS acquire: reserves. Pairs with the release of who revived it
//   LIVE             count - n         I,E  fetch_sub acq_rel: so many slots were emptied before
//   LIVE, count 0    DEAD              E,R  CAS acq_rel; the winner then takes one from the parent's count
//   DEAD             LIVE, count 1     I    CAS acq_rel, with a reservation in the parent, which becomes the count of this child
//   DEAD             UNLINKED          R    CAS acq_rel: sees all its slots as they were left
//
// Limits: count < 2^32, that is fewer than 2^32 - 64 operations at a time.
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace spw::files {

class NodeState {
 public:
  enum class Life : uint8_t { kLive = 0, kDead = 1, kUnlinked = 2 };
  static constexpr unsigned kLifeShift = 32;

  constexpr explicit NodeState(uint64_t bits) : bits_(bits) {}
  constexpr NodeState(Life life, uint32_t count) : bits_(static_cast<uint64_t>(life) << kLifeShift | count) {}

  constexpr uint64_t bits() const { return bits_; }
  constexpr uint32_t count() const { return static_cast<uint32_t>(bits_); }
  constexpr bool is_live() const { return bits_ >> kLifeShift == static_cast<uint64_t>(Life::kLive); }
  constexpr bool is_empty() const { return bits_ == 0; }  // and LIVE
  constexpr bool is_dead() const { return bits_ >> kLifeShift == static_cast<uint64_t>(Life::kDead); }
  constexpr bool is_unlinked() const { return bits_ >> kLifeShift == static_cast<uint64_t>(Life::kUnlinked); }

 private:
  uint64_t bits_;
};

// A state word in memory, with the transitions of the table above by name.
class AtomicNodeState {
 public:
  NodeState load_acquire() const { return NodeState(bits_.load_acquire()); }
  // Of a node that nobody else sees.
  void start(uint32_t count) { bits_.store_relaxed(NodeState(NodeState::Life::kLive, count).bits()); }

  bool reserve(uint32_t reservations = 1) {
    uint64_t bits = bits_.load_relaxed();
    while (NodeState(bits).is_live())
      if (bits_.cas_weak_acquire(bits, bits + reservations)) return true;
    return false;
  }
  // True when nothing was left to count: whoever hears that calls die() next, except for a root.
  bool take(uint32_t counted) { return NodeState(bits_.fetch_sub_acq_rel(counted)).count() == counted; }
  bool die() { return change({NodeState::Life::kLive, 0}, {NodeState::Life::kDead, 0}); }
  bool revive() { return change({NodeState::Life::kDead, 0}, {NodeState::Life::kLive, 1}); }
  bool unlink() { return change({NodeState::Life::kDead, 0}, {NodeState::Life::kUnlinked, 0}); }

 private:
  bool change(NodeState from, NodeState to) {
    uint64_t bits = from.bits();
    return bits_.cas_strong_acq_rel(bits, to.bits());
  }

  Atomic<uint64_t> bits_{0};
};

struct alignas(64) PageNode {
  static constexpr unsigned kBits = 6;
  static constexpr unsigned kSlots = 1u << kBits;

  AtomicNodeState state;
  Atomic<uint64_t> tags;                       // bit i: slot i may be dirty, or have something dirty below it
  Atomic<PageNode*> next;                      // in a list of the pool's, or of nodes on their way there
  uint64_t retired_epoch = 0;                  // while it waits for its readers
  Atomic<PageNode*> next_bundle;               // of a bundle's first node: the pool's next bundle,
  PageNode* bundle_last = nullptr;             // and its last node
  unsigned shift = 0;                          // of the bits of an index that choose the slot; 0: a leaf
  alignas(64) Atomic<uint64_t> slots[kSlots];  // 0; an entry with its dirty bit; or the address of a child

  bool is_leaf() const { return shift == 0; }
  unsigned slot_of(uint64_t index) const { return static_cast<unsigned>(index >> shift) % kSlots; }
  // Of an inner node's slot.
  static PageNode* child_in(uint64_t word) { return reinterpret_cast<PageNode*>(word); }
  uint64_t as_word() const { return reinterpret_cast<uint64_t>(this); }
};
static_assert(sizeof(PageNode) <= 576);

}  // namespace spw::files
