// Keeps frames free ahead of need, so that those who miss seldom evict: when fewer than the low watermark are free,
// evicts until the high watermark is reached. What is in use above a limit that was lowered goes in any case: whoever
// lowered it may not have waited for what has to be written first.
//
// The threads act as clients of the cache: the partitions' owners choose the victims,
// write dirty ones behind and release clean ones in batches. (UMap, section 3: evict
// managers and evictors; victims are taken in batches that need no waiting.)
// Threads: start() and stop() by one. Limits: watermarks are percents of the frames; one look every kLookNs, and soon
// after one that found something to do: what it began to write may go then, and who takes frames that fast needs more.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "cache/cache.h"
#include "platform/thread.h"

namespace spw::cache {

class PageCleaner {
 public:
  struct Options {
    unsigned evictors = 1;  // 0: those who miss evict, and only what is above the limit goes here
    unsigned low_percent = 1;
    unsigned high_percent = 2;
  };

  // `looked`: called by the first of the threads after a look, every kLookNs.
  PageCleaner(SharedCache& cache, const Options& options, std::function<void()> looked = {})
      : cache_(cache), options_(options), looked_(std::move(looked)) {}
  ~PageCleaner() { stop(); }

  Status start();
  void stop();

 private:
  static constexpr uint64_t kLookNs = 5'000'000;
  static constexpr uint64_t kSoonNs = 1'000'000;

  void keep(Client& client, bool is_first);

  SharedCache& cache_;
  const Options options_;
  const std::function<void()> looked_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::vector<platform::Thread> threads_;
};

}  // namespace spw::cache
