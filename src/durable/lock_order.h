// What a lock hands on from the section that released it to the one that takes it next: which unfinished sections it has seen, and the
// time by a Lamport clock. (Atlas, OOPSLA 2014: synchronises-with edges of the log; Lamport, 1978.)
//
// Only locks that were released while a section was unfinished are in it, so it is small: most locks end their section first.
// Threads: any. Whoever releases calls before the lock is free, whoever acquires after he has it, so the calls of one lock are ordered.
#pragma once

#include <array>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/atomic.h"
#include "durable/layout.h"

namespace spw::durable {

struct HandedOn {
  struct Section {
    unsigned region;
    Dependence on;
  };
  uint64_t stamp = 0;
  std::vector<Section> sections;
};

class LockOrder {
 public:
  void released(const void* lock, HandedOn what) {
    Shard& shard = shard_of(lock);
    std::lock_guard guard(shard.mutex);
    shard.locks[lock] = std::move(what);
    shard.count.store_relaxed(static_cast<uint32_t>(shard.locks.size()));
  }
  // Nothing was unfinished.
  void released(const void* lock) {
    Shard& shard = shard_of(lock);
    if (shard.count.load_relaxed() == 0) return;
    std::lock_guard guard(shard.mutex);
    shard.locks.erase(lock);
    shard.count.store_relaxed(static_cast<uint32_t>(shard.locks.size()));
  }
  HandedOn acquired(const void* lock) const {
    const Shard& shard = shard_of(lock);
    if (shard.count.load_relaxed() == 0) return {};
    std::lock_guard guard(shard.mutex);
    const auto found = shard.locks.find(lock);
    return found == shard.locks.end() ? HandedOn() : found->second;
  }
  // A region is gone.
  void clear() {
    for (Shard& shard : shards_) {
      std::lock_guard guard(shard.mutex);
      shard.locks.clear();
      shard.count.store_relaxed(0);
    }
  }

 private:
  static constexpr size_t kShards = 64;
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<const void*, HandedOn> locks;
    // Relaxed is enough: who acquires a lock comes after who released it, by the lock itself.
    Atomic<uint32_t> count{0};
  };
  static size_t index_of(const void* lock) {
    return (reinterpret_cast<uintptr_t>(lock) * 0x9E3779B97F4A7C15u) >> 58;
  }
  Shard& shard_of(const void* lock) { return shards_[index_of(lock)]; }
  const Shard& shard_of(const void* lock) const { return shards_[index_of(lock)]; }

  std::array<Shard, kShards> shards_;
};

}  // namespace spw::durable
