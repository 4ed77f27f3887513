// Counters: one cache-line-aligned block of plain 64-bit words a thread, summed when read.
//
// Invariant: total(c) = retired[c] + sum over live threads of block[c]; a counter never goes down.
// Threads: a thread adds only to its own block, with relaxed loads and stores (no read-modify-write
// instruction); any thread may read totals at any time and sees each word as of some recent instant.
// Lifetime: blocks are never unmapped while the process lives; a thread's block is folded into `retired` and
// reused. Limits: none; a block is sizeof(uint64_t) * kCounterCount rounded up to a cache line.
// Blocks may lie in memory that another process reads (live_page.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/atomic.h"
#include "platform/time.h"
#include "telemetry/latencies.h"
#include "telemetry/miss_place.h"
#include "telemetry/trace.h"

namespace spw::telemetry {

enum class Counter : unsigned {
#define SPW_COUNTER(name, text, unit) name,
#include "telemetry/counters.inc"
#undef SPW_COUNTER
};

inline constexpr size_t kCounterCount = 0
#define SPW_COUNTER(name, text, unit) +1
#include "telemetry/counters.inc"
#undef SPW_COUNTER
    ;

struct CounterInfo {
  const char* name;
  const char* text;
  const char* unit;
};

// In the order of Counter.
std::span<const CounterInfo, kCounterCount> counter_infos();

struct alignas(64) CounterBlock {
  // The last misses are remembered, for those who ask where they come
  // from: the nth in recent_misses[n % kRecentMisses].
  static constexpr size_t kRecentMisses = 64;

  std::array<Atomic<uint64_t>, kCounterCount> words;
  std::array<Atomic<uint64_t>, kRecentMisses> recent_misses;
  // And of each kPlaceEvery-th where in the program's code it was (miss_place.h): that of the nth in
  // recent_places[n / kPlaceEvery % kRecentPlaces].
  static constexpr size_t kPlaceEvery = 8, kRecentPlaces = kRecentMisses / kPlaceEvery;
  std::array<Atomic<uint64_t>, kRecentPlaces> recent_places;
  LatencyBlock miss_latencies;
  TraceRing trace;
  void add(Counter c, uint64_t n = 1) {
    auto& word = words[static_cast<size_t>(c)];
    word.store_relaxed(word.load_relaxed() + n);
  }
};

namespace detail {
// This thread's. nullptr: it has none yet. Trivial, so it stays readable while other thread-local destructors run.
extern constinit thread_local CounterBlock* t_block;
CounterBlock& make_thread_counters();
}  // namespace detail

// This thread's block, made at first use.
inline CounterBlock& thread_counters() {
  CounterBlock* const block = detail::t_block;
  if (block == nullptr) [[unlikely]]
    return detail::make_thread_counters();
  return *block;
}

inline void count(Counter c, uint64_t n = 1) { thread_counters().add(c, n); }

// A miss of the shared cache, on the block of this number.
inline void count_miss(uint64_t block) {
  CounterBlock& counters = thread_counters();
  const uint64_t n = counters.words[static_cast<size_t>(Counter::shared_misses)].load_relaxed();
  counters.recent_misses[n % CounterBlock::kRecentMisses].store_relaxed(block);
  if (n % CounterBlock::kPlaceEvery == 0) [[unlikely]]
    counters.recent_places[n / CounterBlock::kPlaceEvery % CounterBlock::kRecentPlaces].store_relaxed(
        miss_place());
  counters.add(Counter::shared_misses);
}

// Of neighbours.
inline void count_misses(uint64_t first, uint64_t blocks) {
  CounterBlock& counters = thread_counters();
  uint64_t n = counters.words[static_cast<size_t>(Counter::shared_misses)].load_relaxed();
  uintptr_t place = 0;
  for (uint64_t block = first; block < first + blocks; ++block, ++n) {
    counters.recent_misses[n % CounterBlock::kRecentMisses].store_relaxed(block);
    if (n % CounterBlock::kPlaceEvery != 0) continue;
    if (place == 0) place = miss_place();
    counters.recent_places[n / CounterBlock::kPlaceEvery % CounterBlock::kRecentPlaces].store_relaxed(place);
  }
  counters.add(Counter::shared_misses, blocks);
}

// Something happened to the block of this number (trace.h).
inline void note_event_at(uint64_t at_ns, TraceEvent event, uint64_t block, uint64_t value = 0) {
  thread_counters().trace.note(event, block, value, at_ns);
}
inline void note_event(TraceEvent event, uint64_t block, uint64_t value = 0) {
  note_event_at(platform::monotonic_ns(), event, block, value);
}

// A miss, or a wait for a block that somebody else brings in, is over; it began at this time. How long it took.
inline uint64_t note_missed(uint64_t block, uint64_t asked_ns) {
  CounterBlock& counters = thread_counters();
  const uint64_t now_ns = platform::monotonic_ns(), took_ns = now_ns - asked_ns;
  counters.miss_latencies.add(took_ns);
  counters.trace.note(TraceEvent::kMissed, block, took_ns, now_ns);
  return took_ns;
}

// New blocks come from [memory, + bytes) as long as there is room,
// this thread's at once; `used` says how many have. Once a process.
void place_counters(void* memory, size_t bytes, Atomic<uint32_t>& used);
// In a forked child: its counters are its own.
void forget_placed_counters();

using Totals = std::array<uint64_t, kCounterCount>;
Totals read_totals();
Latencies read_miss_latencies();
inline uint64_t total(const Totals& totals, Counter c) { return totals[static_cast<size_t>(c)]; }

}  // namespace spw::telemetry
