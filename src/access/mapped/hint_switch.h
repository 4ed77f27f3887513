// Whether code compiled with hints runs its hinted version (abi/hints.h: the switch).
//
// A hint costs each access to what is resident; it saves a fault where a block has to be fetched
// on demand or a clean one is stored to. Such *trips* are told by note_trip(), whichever way they
// came. A fault saved is some ten microseconds, hints are a tenth to a half of the processor's
// time in loops that do little else: they are worth it while there are thousands of trips a
// second. Where blocks are read ahead, or stay, plain code with a fault now and then is faster.
//
// On: at the first trip of all, and later as soon as trips came at kOnRate from one look to the next. Off: when over
// kCalmNs they came at less than kOffRate.
// Threads: note_trip() any; look() one, every few milliseconds. Lifetime: the engine's.
#pragma once

#include <cstdint>

#include "access/version_switch.h"
#include "base/atomic.h"

namespace spw::access {

class HintSwitch {
 public:
  void note_trip() {
    trips_.fetch_add_relaxed(1);
    if (!was_off_.load_relaxed()) access::VersionSwitch::set(true);
  }
  // `now_ns`: of a clock that only goes forward.
  void look(uint64_t now_ns);

 private:
  // Trips a second.
  static constexpr uint64_t kOnRate = 4000;
  static constexpr uint64_t kOffRate = 2000;
  static constexpr uint64_t kCalmNs = 100'000'000;

  void begin(uint64_t now_ns) {
    trips_since_ = 0;
    since_ns_ = now_ns;
  }

  Atomic<uint64_t> trips_{0};
  Atomic<bool> was_off_{false};  // has been found not worth it before
  // While on: since hints were switched on or were last found worth it. While off: since the last look.
  uint64_t trips_since_ = 0;
  uint64_t since_ns_ = 0;
};

}  // namespace spw::access
