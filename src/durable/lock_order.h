// What a lock hands on from those who released it to the one that takes it next: which unfinished sections they have
// seen, and the time by a Lamport clock. (Atlas, OOPSLA 2014: synchronises-with edges of the log; Lamport, 1978.)
//
// A release adds to what the lock has handed on before, since several may hold a lock at once (readers), and those who
// release it need not have seen what the others did. What is history by then is dropped: only locks that were released
// while a section was unfinished are here.
// Threads: any. Whoever releases calls before the lock is free, whoever
// acquires after he has it, so the calls of one lock are ordered.
#pragma once

#include <algorithm>
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
  // is_history(section): nobody has to depend on it any more.
  template <class IsHistory>
  void released(const void* lock, const HandedOn& what, IsHistory is_history) {
    Shard& shard = shard_of(lock);
    if (what.sections.empty() && shard.count.load_relaxed() == 0) return;
    std::lock_guard guard(shard.mutex);
    HandedOn& kept = shard.locks[lock];
    kept.stamp = std::max(kept.stamp, what.stamp);
    // The latest of a slot is enough: it comes after those before it.
    std::erase_if(kept.sections, [&](const HandedOn::Section& old) {
      return is_history(old) || std::any_of(what.sections.begin(), what.sections.end(), [&](const auto& now) {
               return now.region == old.region && now.on.slot == old.on.slot;
             });
    });
    kept.sections.insert(kept.sections.end(), what.sections.begin(), what.sections.end());
    if (kept.sections.empty()) shard.locks.erase(lock);
    shard.count.store_relaxed(static_cast<uint32_t>(shard.locks.size()));
  }
  HandedOn acquired(const void* lock) const {
    const Shard& shard = shard_of(lock);
    if (shard.count.load_relaxed() == 0) return {};
    std::lock_guard guard(shard.mutex);
    const auto found = shard.locks.find(lock);
    return found == shard.locks.end() ? HandedOn() : found->second;
  }
  // The region is gone.
  void forget(unsigned region) {
    for (Shard& shard : shards_) {
      std::lock_guard guard(shard.mutex);
      for (auto at = shard.locks.begin(); at != shard.locks.end();) {
        std::erase_if(at->second.sections,
                      [region](const HandedOn::Section& old) { return old.region == region; });
        at = at->second.sections.empty() ? shard.locks.erase(at) : std::next(at);
      }
      shard.count.store_relaxed(static_cast<uint32_t>(shard.locks.size()));
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
