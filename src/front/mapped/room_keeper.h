// Keeps frames free ahead of need, so that those who miss seldom evict: when fewer than the low watermark are free, evicts
// until the high watermark is reached. Switches hints on when blocks are read, and off again when none was and memory has been plentiful
// for a while.
//
// The threads act as clients of the cache: the partitions' owners choose the victims, write dirty ones behind and release
// clean ones in batches. (UMap, section 3: evict managers and evictors; victims are taken in batches that need no waiting.)
// Threads: start() and stop() by one. Limits: watermarks are percents of the frames; one look every kLookNs.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/atomic.h"
#include "cache/cache.h"
#include "front/mapped/hint_table.h"
#include "platform/thread.h"

namespace spw::front {

class RoomKeeper {
 public:
  struct Options {
    unsigned evictors = 1;  // 0: those who miss evict
    unsigned low_percent = 1;
    unsigned high_percent = 2;
  };

  RoomKeeper(cache::SharedCache& cache, const Options& options) : cache_(cache), options_(options) {}
  ~RoomKeeper() { stop(); }

  Status start();
  void stop();

  // A miss read its block from a store: hints save the next one a fault, however much memory is free.
  void note_read_miss() {
    if (!read_lately_.load_relaxed()) read_lately_.store_relaxed(true);
    HintTable::switch_on(true);
  }

 private:
  static constexpr uint64_t kLookNs = 5'000'000;
  // Looks without a shortage after which hints are switched off: two seconds.
  static constexpr unsigned kCalmLooks = 400;
  // There is no shortage while more than this share of the frames is free and nothing was read.
  static constexpr uint32_t kCalmShare = 4;

  void keep(cache::Client& client, bool watches_hints);
  void watch_hints();

  cache::SharedCache& cache_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  unsigned calm_looks_ = 0;
  Atomic<bool> read_lately_{false};
  std::vector<platform::Thread> threads_;
};

}  // namespace spw::front
