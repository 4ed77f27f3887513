// What is known of an extent, 2 MiB of the space at a multiple of that, in one word that all threads agree on.
//
//      63       62      61    24 23        4   3     2   0
//     +-------+--------+--------+-----------+-------+-------+
//     | small | wished |  pins  |   slot    | sleep | state |
//     +-------+--------+--------+-----------+-------+-------+
//
//   kNone      no extent: its blocks, if any are in memory, are the block cache's
//   kClaimed   the mover looks whether it can become one; whoever needs it takes it back to kNone, and goes on
//   kFilling   it is being read into its slot
//   kParked    its contents are in its slot, and nothing is at its own address
//   kMoving    they are on their way from the one to the other, for some microseconds
//   kPlaced    they are at its own address, where they may be stored to, unnoticed
//   kWriting   they are in its slot, where nobody else reaches them, and what has changed of them is written
//
//   kNone -> kClaimed -> kFilling -> kParked -> kMoving -> kPlaced -> kMoving -> kWriting -> kNone      (mover, and,
//                                       |          |                                ^    from kParked on, who pins)
//            kClaimed -> kNone          +--------->|------------------------------->|   kWriting -> kParked: not written
//            kFilling -> kNone: not read           kMoving -> kParked: it rests, or could not be moved to its address
//                                                  kMoving -> kPlaced: it could not be moved back
//
// Who pins makes kParked kMoving and that kPlaced; the mover does all else, but for kClaimed -> kNone. Pins are counted
// in kPlaced alone, and keep it so. `sleep`: somebody waits for the word to change. `small`: it is never to become an
// extent, since the program has chosen access rights there, or the kernel would not move it. `wished`, of kNone alone:
// a stream is about to come there, and the mover has not looked yet whether it can become one. Whoever misses a block
// of it waits for that, for Extents::kWishNsMax at most, rather than begin to bring it in block by block.
// Ordering: whoever changes the state releases what he did to the contents, and whoever finds a state acquires it.
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace spw::cache {

enum class ExtentState : uint8_t { kNone, kClaimed, kFilling, kParked, kMoving, kPlaced, kWriting };

class ExtentWord {
 public:
  static constexpr uint32_t kSlotsMax = 1 << 20;
  static constexpr uint64_t kPinsMax = (uint64_t{1} << 38) - 1;  // ranges may be pinned again and again

  ExtentWord() = default;
  explicit ExtentWord(uint64_t bits) : bits_(bits) {}

  uint64_t bits() const { return bits_; }
  ExtentState state() const { return static_cast<ExtentState>(bits_ & kStateMask); }
  uint32_t slot() const { return static_cast<uint32_t>(bits_ >> kSlotAt) & (kSlotsMax - 1); }
  uint64_t pins() const { return bits_ >> kPinsAt & kPinsMax; }
  bool has_sleepers() const { return (bits_ & kSleepers) != 0; }
  bool is_small() const { return (bits_ & kSmall) != 0; }
  bool is_wished() const { return (bits_ & kWished) != 0; }
  // None, and it may become one.
  bool is_vacant() const { return state() == ExtentState::kNone && !is_small(); }

  // In another state, without pins, not wished for any more; who sleeps has to be woken.
  ExtentWord in(ExtentState state) const {
    const uint64_t kept = kSmall | kSleepers | (state == ExtentState::kNone ? 0 : kSlotMask);
    return ExtentWord((bits_ & kept) | static_cast<uint64_t>(state));
  }
  ExtentWord with_pins(uint64_t pins) const { return ExtentWord(bits_ + pins * kPin); }
  ExtentWord without_sleepers() const { return ExtentWord(bits_ & ~kSleepers); }
  ExtentWord with_slot(uint32_t slot) const {
    return ExtentWord((bits_ & ~kSlotMask) | uint64_t{slot} << kSlotAt);
  }
  ExtentWord with_sleepers() const { return ExtentWord(bits_ | kSleepers); }
  ExtentWord with_pin() const { return with_pins(1); }
  ExtentWord without_pin() const { return ExtentWord(bits_ - kPin); }
  ExtentWord as_small() const { return ExtentWord(bits_ | kSmall); }
  ExtentWord as_wished() const { return ExtentWord(bits_ | kWished); }

 private:
  static constexpr uint64_t kStateMask = 7;
  static constexpr uint64_t kSleepers = 8;
  static constexpr unsigned kSlotAt = 4, kPinsAt = 24;
  static constexpr uint64_t kSlotMask = uint64_t{kSlotsMax - 1} << kSlotAt;
  static constexpr uint64_t kPin = uint64_t{1} << kPinsAt;
  static constexpr uint64_t kWished = uint64_t{1} << 62;
  static constexpr uint64_t kSmall = uint64_t{1} << 63;

  uint64_t bits_ = 0;
};

class AtomicExtentWord {
 public:
  static constexpr uint64_t kSleepNsMax = 100'000'000;  // only a safeguard
  ExtentWord load() const { return ExtentWord(word_.load_acquire()); }
  // False: it is another one by now, `*seen`.
  bool change(ExtentWord* seen, ExtentWord to) {
    uint64_t bits = seen->bits();
    const bool is_done = word_.cas_strong_acq_rel(bits, to.bits());
    if (!is_done) *seen = load();
    return is_done;
  }
  // Of the state that the caller alone may change, to another one; wakes those who wait for that.
  void set(ExtentState state, uint64_t pins = 0);
  // Makes it kNone, not wished for, if it is such a one; wakes those who wait. What it is then.
  template <class IsSuch>
  ExtentWord make_none(IsSuch is_such) {
    ExtentWord seen = load();
    while (is_such(seen))
      if (const ExtentWord none = seen.in(ExtentState::kNone).without_sleepers(); change(&seen, none)) {
        if (seen.has_sleepers()) wake();
        return none;
      }
    return seen;
  }
  // Sleeps until the word is another one than `seen`, or some time has passed.
  void await_change(ExtentWord seen, uint64_t timeout_ns = kSleepNsMax);

 private:
  void wake();
  Atomic<uint32_t>& low_half() { return *reinterpret_cast<Atomic<uint32_t>*>(word_.address()); }

  Atomic<uint64_t> word_{0};
};

}  // namespace spw::cache
