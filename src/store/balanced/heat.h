// How often each chunk of a balanced store was read or written of late: in how many ticks it was, which are halved each
// second. So who goes through a chunk once has used it a few times, however small the reads are.
//
// Threads: any; what several note at the same time may be lost. Limits: after an hour without use a chunk may count as
// hot once.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/status.h"
#include "base/units.h"
#include "platform/memory.h"

namespace spw::store {

class Heat {
 public:
  static constexpr uint64_t kTicksPerSecond = 16, kTickNs = 1'000'000'000 / kTicksPerSecond;

  Status allocate(uint64_t chunks) {
    auto memory = platform::map_anonymous(round_up(chunks * sizeof(uint32_t), kMmuPageBytes));
    if (!memory) return memory.status();
    memory_ = std::move(*memory);
    return {};
  }
  uint32_t of(uint64_t chunk, uint64_t now_ns) const {
    return decayed(words()[chunk].load_relaxed(), tick_of(now_ns));
  }
  // What it comes to; 0 when it was noted in this tick before.
  uint32_t note(uint64_t chunk, uint64_t now_ns) {
    Atomic<uint32_t>& word = words()[chunk];
    const uint32_t seen = word.load_relaxed(), tick = tick_of(now_ns);
    if (seen >> kTickShift == tick && (seen & kCountMask) != 0) return 0;
    const uint32_t count = decayed(seen, tick) + 1;
    word.store_relaxed(tick << kTickShift | count);
    return count;
  }

 private:
  static constexpr unsigned kTickShift = 16;
  static constexpr uint32_t kCountMask = UINT16_MAX;  // at most two seconds' ticks are counted
  static uint32_t tick_of(uint64_t now_ns) { return static_cast<uint32_t>(now_ns / kTickNs) & UINT16_MAX; }
  static uint32_t decayed(uint32_t word, uint32_t tick) {
    constexpr uint32_t kSecondsMax = 16, kSeconds = (UINT16_MAX + 1) / kTicksPerSecond;
    const uint32_t age = (tick / kTicksPerSecond - (word >> kTickShift) / kTicksPerSecond) % kSeconds;
    // Another thread's clock was read later, and its note made before.
    if (age > kSeconds - kSecondsMax) return word & kCountMask;
    return age > kSecondsMax ? 0 : (word & kCountMask) >> age;
  }
  Atomic<uint32_t>* words() const { return reinterpret_cast<Atomic<uint32_t>*>(memory_.data()); }

  platform::Mapping memory_;
};

}  // namespace spw::store
