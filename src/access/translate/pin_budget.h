// How many blocks each thread's SATC may keep pinned, so that every partition can always evict.
//
// A pinned block cannot be evicted, and a SATC entry is a pin. The budget is therefore kept *per partition*:
// a thread is charged the most pins it can ever have in any one partition, and the charges of all threads
// stay below what a partition can spare:
//
//     sum over threads of charge(thread) <= capacity
//     capacity = 7/8 of the smallest partition's frames - pins reserved for aliases and held windows
//     charge(thread) = entries per partition group + kRingPins
//
// Room for kLateThreads small SATCs is kept back, up to half of the capacity. Of the rest the first thread, which is
// often the only one, gets half, and the other `expected_threads` share the other half evenly; each later thread gets
// 1/kLateShare of what is left, and all get at least kMinEntries. When not even that is left, acquire() waits for
// threads to end, up to kThreadWaitNsMax; then the cap is too small for the thread count, and it says so (EINVAL). A
// thread that finds its SATC full may ask for more by grow(): it gets what is neither charged nor kept back, where half
// a fair share is kept back for each expected thread that has not come yet.
//
// A translator for a thread's signal handlers (engine.h) is charged
// its ring, like a thread that came late, but is none.
//
// Threads: any. Lifetime: outlives every grant. Limits: named below.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "abi/abi.h"
#include "base/status.h"

namespace spw::access {

inline constexpr uint32_t kSatcWays = 8;
inline constexpr uint32_t kMinEntries = 2;
inline constexpr uint32_t kEntriesPerThreadMax = 1u << 22;
inline constexpr uint32_t kGrowthShareMin = 8;
// Entries that one translation evicts at most: one for room, one to bring a full set down.
inline constexpr uint32_t kEvictedAtOnce = 2;
// Evicted entries stay pinned for this many further evictions: what makes the ABI's validity rule true.
inline constexpr uint32_t kRingPins = kEvictedAtOnce * SPW_STABLE_TRANSLATIONS;
// Windows of the public API that all threads together may hold: kept out of the threads' shares.
inline constexpr uint32_t kHeldWindowsMax = 16;
// How long a thread waits for others to end when no pins are left for it.
inline constexpr uint64_t kThreadWaitNsMax = 10'000'000'000;

// The shape of one thread's private SATC: groups * sets * ways entries. Blocks of one partition fall into one group.
struct SatcShape {
  uint32_t groups = 0;  // a power of two, at most the number of partitions
  uint32_t sets = 0;    // in each group; odd, unless they are very few
  uint32_t ways = 0;
  uint32_t entries() const { return groups * sets * ways; }
  uint32_t charge() const { return sets * ways + kRingPins; }
};

class PinBudget {
 public:
  // `partition_frames`: frames of the smallest partition. `partitions`: a power of two.
  // `reserved`: pins others may hold in one partition (the aliases of foreign code).
  PinBudget(uint32_t partition_frames, uint32_t partitions, uint32_t expected_threads, uint32_t reserved = 0,
            uint64_t wait_ns_max = kThreadWaitNsMax);

  enum class For : uint8_t { kThread, kHandlers };
  Result<SatcShape> acquire(For whom = For::kThread);
  // A larger shape in exchange for `shape`, up to twice its entries; `shape` itself when it would not become larger by
  // 1/kGrowthShareMin.
  SatcShape grow(const SatcShape& shape);
  void release(const SatcShape& shape, For whom = For::kThread);
  // No shape that grow() returns has more entries.
  uint32_t entries_max() const;

  uint32_t capacity() const { return capacity_; }
  uint32_t charged() const;

 private:
  SatcShape shape_for(uint32_t entries_per_partition) const;
  uint32_t for_late_threads() const;
  uint32_t charge_for_thread(uint32_t left) const;

  const uint32_t partitions_;
  const uint32_t expected_threads_;
  const uint32_t capacity_;
  const uint64_t wait_ns_max_;
  mutable std::mutex mutex_;
  std::condition_variable released_;
  uint32_t charged_ = 0;
  uint32_t threads_ = 0;
};

}  // namespace spw::access
