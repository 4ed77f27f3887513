// Keeps frames free ahead of need, so that those who miss seldom evict: when fewer than the low watermark are free, evicts
// until the high watermark is reached. Gives the hints' switch its looks. What is in use above a limit that was lowered goes in
// any case: whoever lowered it may not have waited for what has to be written first.
//
// The threads act as clients of the cache: the partitions' owners choose the victims, write dirty ones behind and release
// clean ones in batches. (UMap, section 3: evict managers and evictors; victims are taken in batches that need no waiting.)
// Threads: start() and stop() by one. Limits: watermarks are percents of the frames; one look every kLookNs.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "cache/cache.h"
#include "front/mapped/hint_switch.h"
#include "platform/thread.h"

namespace spw::front {

class RoomKeeper {
 public:
  struct Options {
    unsigned evictors = 1;  // 0: those who miss evict, and only what is above the limit goes here
    unsigned low_percent = 1;
    unsigned high_percent = 2;
  };

  RoomKeeper(cache::SharedCache& cache, HintSwitch& hint_switch, const Options& options)
      : cache_(cache), hint_switch_(hint_switch), options_(options) {}
  ~RoomKeeper() { stop(); }

  Status start();
  void stop();

 private:
  static constexpr uint64_t kLookNs = 5'000'000;

  void keep(cache::Client& client, bool looks_at_hints);

  cache::SharedCache& cache_;
  HintSwitch& hint_switch_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::vector<platform::Thread> threads_;
};

}  // namespace spw::front
