// The pin word: everything the threads of a process must agree on about one frame, in 64 bits, changed by single atomic
// operations. Identity, reference count and state stand in one word so that a client takes them in one step: whoever
// counts a reference has thereby checked that the frame holds the block it meant.
//
//      63                         30 29  28 27   26     25    24     23       22      21     20    19       0
//     +-----------------------------+------+--+------+------+-----+-------+---------+-----+-------+---------+
//     |          block (34)         |state | 0|summed|parked|dirty|writing|reference|ahead|waiters|refs (20)|
//     +-----------------------------+------+--+------+------+-----+-------+---------+-----+-------+---------+
//
//   refs        pins not yet unpinned, waiting pins of a filling frame included
//   waiters     a client sleeps on the word's low half until the state is no longer `filling`
//   ahead       brought in by read-ahead and not used since; while filling: the owner's queue fills it, not a client
//   referenced  used since the policy last looked (CLOCK's bit)
//   writing     a writeback reads the frame; it is not evicted, and no second writeback of it begins
//   dirty       holds bytes its store has not
//   parked      while filling: the contents are at hand, and the owner installs them when somebody asks. Without
//               `ahead` the block is *lifted*: it was in place, and has left it to be written, and evicted
//   summed      came in dirty, and has not been written since: its sum tells whether it has to be (writeback/fill_sums.h)
//
// Invariants:  state = free => all other bits are 0
//              a frame is in the block table <=> state != free
//              refs > 0 => dirty is not cleared, the state does not become free
//              writing => state = resident, or filling, of what is being lifted, or was
//              parked => state = filling
//
// Transitions. C: any client; F: who fills the frame (the client that missed, or the owner); O: the partition's owner.
//
//   from                            to                          who  operation and order
//   free                            filling, block, refs 0|1    O    store release (before the slot is published)
//   filling                         refs + 1                    C,O  CAS acquire
//   filling                         refs - 1                    C    CAS acquire (who joined does not wait after all)
//   filling                         waiters                     C    CAS relaxed (the futex orders)
//   filling, ahead                  parked                      O    fetch_or relaxed (the owner alone reads the contents)
//   filling                         resident, waiters and       F    CAS release: pairs with the acquire of every pin
//                                   parked cleared
//                                   (ahead cleared where uses
//                                   will not be seen, and of
//                                   what came along with a miss;
//                                   dirty with zeros, and where
//                                   stores are to be expected,
//                                   of shared files with summed)
//   filling                         failed, waiters cleared     F    CAS release: pairs with the acquire of who waited
//   resident                        refs + 1, referenced,       C,O  CAS acquire: pairs with F's release, so the
//                                   dirty if for write,              contents are seen
//                                   ahead cleared
//   resident, refs 1 (its own),     filling (place: dirty and   C    CAS acquire: pairs with the last unpin of others, so
//     not writing                     referenced stay)               what they stored is moved; ended as by F
//   resident, ahead                 ahead cleared               C    CAS acquire (its stream has skipped it: no use)
//   resident, not dirty             refs + 1                    C    CAS acquire (stores are allowed ahead of need: no use)
//   resident, refs > 0              dirty                       C    fetch_or relaxed (its holder's unpin orders it)
//   resident, refs 0, writing,      filling                     O    CAS acquire: pairs with the last unpin, so what was
//     not ahead, not dirty                                           stored is lifted
//   filling, writing                parked                      O    fetch_or relaxed: it is lifted; or else resident, as
//                                                                    by F, in place again or not lifted after all
//   parked, refs 0, not dirty,      free                        O    CAS acquire (lifted)
//     not writing, not ahead
//   resident|failed, refs > 0       refs - 1                    C    fetch_sub acq_rel: the holder's accesses come first
//   resident                        referenced cleared          O    fetch_and relaxed
//   resident, refs 0, dirty,        writing, dirty cleared      O    CAS acquire: pairs with the last unpin, so the
//     not writing                                                    writeback reads what was written
//   resident, refs > 0, dirty,      writing                     O    CAS acquire (sync of a pinned block: stays dirty)
//     not writing
//   writing                         summed cleared              O    fetch_and relaxed (the sum is the owner's)
//   writing                         writing cleared             O    fetch_and acq_rel
//   writing                         writing cleared, dirty      O    CAS release (the writeback failed, or had nowhere
//                                                                    to go until its range was handed out again)
//   resident, refs 0, not dirty,    free                        O    CAS acquire: pairs with the last unpin, so the next
//     not writing                                                    fill comes after its accesses
//   resident, refs 0, not writing   free (discard: dirty too)   O    CAS acquire
//   failed, refs 0                  free                        O    CAS acquire
//
// Limits: block < 2^34; refs < 2^20, so threads * pins of one block by one thread < 2^20.
#pragma once

#include <bit>
#include <cstdint>

#include "base/atomic.h"
#include "base/ids.h"

namespace spw::cache {

enum class FrameState : uint8_t { kFree = 0, kFilling = 1, kResident = 2, kFailed = 3 };

class PinWord {
 public:
  static constexpr uint64_t kRefsMax = (uint64_t{1} << 20) - 1;
  static constexpr uint64_t kWaiters = uint64_t{1} << 20;
  static constexpr uint64_t kAhead = uint64_t{1} << 21;
  static constexpr uint64_t kReferenced = uint64_t{1} << 22;
  static constexpr uint64_t kWriting = uint64_t{1} << 23;
  static constexpr uint64_t kDirty = uint64_t{1} << 24;
  static constexpr uint64_t kParked = uint64_t{1} << 25;
  static constexpr uint64_t kSummed = uint64_t{1} << 26;
  static constexpr unsigned kStateShift = 28;
  static constexpr uint64_t kStateMask = uint64_t{3} << kStateShift;
  static constexpr unsigned kBlockShift = 30;
  static_assert(kBlockShift + kBlockIdBits == 64);

  constexpr PinWord() = default;
  constexpr explicit PinWord(uint64_t bits) : bits_(bits) {}

  static constexpr PinWord free() { return PinWord(); }
  static constexpr PinWord filling(BlockId block, uint64_t refs, bool ahead) {
    return PinWord(block.value << kBlockShift | shifted(FrameState::kFilling) | refs | (ahead ? kAhead : 0));
  }

  constexpr uint64_t bits() const { return bits_; }
  constexpr uint32_t low_half() const { return static_cast<uint32_t>(bits_); }
  constexpr BlockId block() const { return BlockId(bits_ >> kBlockShift); }
  constexpr FrameState state() const { return static_cast<FrameState>((bits_ & kStateMask) >> kStateShift); }
  constexpr uint64_t refs() const { return bits_ & kRefsMax; }
  constexpr bool waiters() const { return bits_ & kWaiters; }
  constexpr bool ahead() const { return bits_ & kAhead; }
  constexpr bool referenced() const { return bits_ & kReferenced; }
  constexpr bool writing() const { return bits_ & kWriting; }
  constexpr bool dirty() const { return bits_ & kDirty; }
  constexpr bool parked() const { return bits_ & kParked; }
  constexpr bool summed() const { return bits_ & kSummed; }

  // True of a word a client may pin in one step: `block`, resident, not ahead.
  constexpr bool is_hit(BlockId block) const {
    constexpr uint64_t kIdentity = ~uint64_t{0} << kBlockShift | kStateMask | kAhead;
    return (bits_ & kIdentity) == (block.value << kBlockShift | shifted(FrameState::kResident));
  }
  constexpr bool holds(BlockId block) const { return this->block() == block && state() != FrameState::kFree; }
  constexpr bool is_evictable() const { return is_droppable() && !dirty(); }
  // Evictable but for unwritten contents.
  constexpr bool is_droppable() const { return has_contents() && refs() == 0 && !writing(); }
  constexpr bool has_contents() const { return state() == FrameState::kResident || is_lifted(); }
  constexpr bool is_lifted() const { return parked() && !ahead(); }

  constexpr PinWord pinned(bool for_write) const {
    return PinWord(((bits_ + 1) | kReferenced | (for_write ? kDirty : 0)) & ~kAhead);
  }
  constexpr PinWord joined() const { return PinWord(bits_ + 1); }
  constexpr PinWord left() const { return PinWord(bits_ - 1); }
  constexpr PinWord with(uint64_t flags) const { return PinWord(bits_ | flags); }
  constexpr PinWord without(uint64_t flags) const { return PinWord(bits_ & ~flags); }
  constexpr PinWord in_state(FrameState state) const {
    return PinWord((bits_ & ~kStateMask) | shifted(state));
  }

 private:
  static constexpr uint64_t shifted(FrameState state) { return static_cast<uint64_t>(state) << kStateShift; }

  uint64_t bits_ = 0;
};

// A pin word in memory: the loads, and the transitions of the table above by name.
class AtomicPinWord {
 public:
  PinWord load_relaxed() const { return PinWord(bits_.load_relaxed()); }
  PinWord load_acquire() const { return PinWord(bits_.load_acquire()); }
  void store_release(PinWord word) { bits_.store_release(word.bits()); }

  // Weak; on failure `expected` is what was read.
  bool cas_acquire(PinWord& expected, PinWord desired) {
    uint64_t bits = expected.bits();
    if (bits_.cas_weak_acquire(bits, desired.bits())) return true;
    expected = PinWord(bits);
    return false;
  }
  bool cas_release(PinWord& expected, PinWord desired) {
    uint64_t bits = expected.bits();
    if (bits_.cas_weak_release(bits, desired.bits())) return true;
    expected = PinWord(bits);
    return false;
  }

  // Counts a reference if the word is a hit for `block`. `before` is then the word as it was.
  bool try_pin(BlockId block, bool for_write, PinWord* before) {
    PinWord word = load_relaxed();
    while (word.is_hit(block)) {
      if (cas_acquire(word, word.pinned(for_write))) {
        *before = word;
        return true;
      }
    }
    return false;
  }
  // The word as it was.
  PinWord unpin() { return PinWord(bits_.fetch_sub_acq_rel(1)); }
  PinWord mark_dirty() { return PinWord(bits_.fetch_or_relaxed(PinWord::kDirty)); }
  PinWord clear_referenced() { return PinWord(bits_.fetch_and_relaxed(~PinWord::kReferenced)); }
  PinWord clear_summed() { return PinWord(bits_.fetch_and_relaxed(~PinWord::kSummed)); }
  // The word as it was: who has joined by then may wait, and nobody else would end that.
  PinWord park() { return PinWord(bits_.fetch_or_relaxed(PinWord::kParked)); }
  PinWord end_writing() { return PinWord(bits_.fetch_and_acq_rel(~PinWord::kWriting)); }

  // F: ends a fill. True when somebody sleeps on the word and has to be woken.
  bool end_filling(FrameState state, uint64_t flags, uint64_t cleared = 0) {
    PinWord word = load_relaxed();
    while (!cas_release(
        word, word.in_state(state).without(PinWord::kWaiters | PinWord::kParked | cleared).with(flags))) {
    }
    return word.waiters();
  }
  // O: frees the frame if it still can be; `was` is what it held. `dirty_too`: for discard.
  bool try_free(bool dirty_too, PinWord* was) {
    *was = load_relaxed();
    while (dirty_too ? was->is_droppable() : was->is_evictable())
      if (cas_acquire(*was, PinWord::free())) return true;
    return false;
  }
  bool try_free_failed() {
    PinWord word = load_relaxed();
    while (word.state() == FrameState::kFailed && word.refs() == 0)
      if (cas_acquire(word, PinWord::free())) return true;
    return false;
  }
  // O: starts a writeback of a dirty frame; clears dirty when nobody holds it. Pinned ones only if asked to.
  bool try_begin_writing(bool pinned_too) {
    PinWord word = load_relaxed();
    while (word.state() == FrameState::kResident && word.dirty() && !word.writing() &&
           (pinned_too || word.refs() == 0)) {
      PinWord next = word.with(PinWord::kWriting);
      if (cas_acquire(word, word.refs() == 0 ? next.without(PinWord::kDirty) : next)) return true;
    }
    return false;
  }
  // O: a block that is about to be written leaves its place: nobody may hold it, and who comes waits.
  bool try_begin_lift() {
    PinWord word = load_relaxed();
    while (word.state() == FrameState::kResident && word.writing() && word.refs() == 0 && !word.dirty() &&
           !word.ahead())
      if (cas_acquire(word, word.in_state(FrameState::kFilling))) return true;
    return false;
  }
  // O: the writeback failed, or did not take place.
  void end_writing_dirty() {
    PinWord word = load_relaxed();
    while (!cas_release(word, word.without(PinWord::kWriting).with(PinWord::kDirty))) {
    }
  }

  // The half that holds everything but the upper bits of the block: what sleepers wait on.
  Atomic<uint32_t>& futex_half() { return *reinterpret_cast<Atomic<uint32_t>*>(bits_.address()); }

 private:
  Atomic<uint64_t> bits_;
};
static_assert(sizeof(AtomicPinWord) == 8 && std::endian::native == std::endian::little);

}  // namespace spw::cache
