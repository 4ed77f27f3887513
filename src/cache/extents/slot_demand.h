// How many slots of extents should have memory.
//
// Streams need few, be they long or not: one that is read from, one that is read ahead, one that rests and one that is
// written. More are wanted where extents are used again: one for each that was found in use when it had to leave, and
// one for each that was missed a short while after it had left. What is not wanted any more goes
// slowly, since a huge page costs some milliseconds to come by. Without any stream only what is in use is wanted.
// Threads: the mover's.
#pragma once

#include <algorithm>
#include <cstdint>

namespace spw::cache {

class SlotDemand {
 public:
  static constexpr uint32_t kLeast = 4;
  static constexpr uint32_t kPatience = 64;  // evictions until one slot less is wanted

  uint32_t slots() const { return slots_; }

  // An extent is in use, and stays; it is no more.
  void has_begun() {
    ++in_use_;
    rise();
  }
  void has_ended() { --in_use_; }
  // `missed`: of extents that had left a short while before, since the last eviction.
  void note_eviction(uint32_t missed) {
    missed_ += std::min(missed, kMissedMax - missed_);
    rise();
    waited_ = missed > 0 ? 0 : waited_ + 1;
    if (waited_ >= kPatience) fall();
  }
  // An extent of a stream is asked for.
  void note_stream() { slots_ = std::max(slots_, kLeast); }
  // None has been for a while: one less, down to those that are in use.
  void note_idle() {
    missed_ = waited_ = 0;
    if (slots_ > in_use_) --slots_;
  }
  // A stream may begin to come in extents: not while more slots are wanted than there may be, since they would be taken
  // from other streams that are not done with them.
  bool admits_stream(uint32_t slots_max) {
    if (slots_ <= slots_max) return true;
    waited_ += kPatience / kRefusals;
    if (waited_ >= kPatience) fall();
    return false;
  }

 private:
  static constexpr uint32_t kRefusals = 8;  // of streams, until one slot less is wanted
  static constexpr uint32_t kMissedMax = 1 << 20;

  uint32_t needed() const { return kLeast + in_use_ + missed_; }
  void fall() {
    waited_ = 0;
    if (missed_ > 0) --missed_;
    if (slots_ > needed()) --slots_;
  }
  void rise() { slots_ = std::max(slots_, needed()); }

  uint32_t slots_ = kLeast, in_use_ = 0, missed_ = 0, waited_ = 0;
};

}  // namespace spw::cache
