// Whether code compiled with hints runs its hinted version (abi/hints.h: the switch).
//
// A hint costs each access to what is resident; it saves a fault where a block has to be fetched on demand or a clean one is
// stored to. Such *trips* are told by note_trip(), whichever way they came. They are worth hints while they are more than a small
// share of the blocks that come in; where nearly all of those are read ahead, plain code with a fault now and then is faster.
//
// On: at the first trip of all, and later as soon as trips are kOnShare of the blocks of one look. Off: when over kCalmLooks looks
// they were less than kOffShare.
// Threads: note_trip() any; look() one, every few milliseconds. Lifetime: the engine's.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "front/mapped/hint_table.h"

namespace spw::front {

class HintSwitch {
 public:
  void note_trip() {
    trips_.fetch_add_relaxed(1);
    if (!was_off_.load_relaxed()) HintTable::switch_on(true);
  }
  // `blocks_in`: how many blocks have been brought in since the start.
  void look(uint64_t blocks_in);
  // Nothing happened since the last look() that look() would act on.
  bool is_idle() const;

 private:
  static constexpr uint64_t kTripsMin = 2;  // of one look: fewer do not matter
  // One trip on so many blocks.
  static constexpr uint64_t kOnShare = 64;
  static constexpr uint64_t kOffShare = 128;
  static constexpr unsigned kCalmLooks = 20;

  Atomic<uint64_t> trips_{0};
  Atomic<bool> was_off_{false};  // has been found not worth it before
  uint64_t blocks_seen_ = 0;
  // Since hints were switched on, or were last found worth it.
  uint64_t trips_since_ = 0;
  uint64_t blocks_since_ = 0;
  unsigned looks_since_ = 0;
};

}  // namespace spw::front
