// The cap that holds now, below that of the start: what the program chose (spw_set_memory_limit), and what is left of
// it beside memory that is not managed (native_memory.h).
//
//   bytes()        what the program chose
//   the frames     what bytes() has room for, less what native memory takes of it; and no more than this process is
//                  granted of a cap that it shares (tree_cap.h)
//
// Tables and staging stay, so all that goes is frames.
// Threads: any. Lifetime: shorter than that of what it is made of. Mapped engine with a cap that does not follow the
// machine only; of others, it says what they are.
#pragma once

#include <cstdint>
#include <mutex>

#include "access/engine.h"
#include "base/atomic.h"
#include "cache/cache.h"
#include "process/options.h"
#include "process/page_cache_share.h"
#include "process/pinned_ranges.h"

namespace spw::process {

class MemoryLimit {
 public:
  struct Parts {
    cache::SharedCache& cache;
    access::Engine& engine;
    PinnedRanges& pinned;
    PageCacheShare* page_cache_share;  // nullptr: the cache has all of it
    bool can_change;
  };
  MemoryLimit(const Options& options, const Parts& parts) : options_(options), parts_(parts) {}

  uint64_t bytes() const;
  uint64_t chosen_bytes() const { return chosen_bytes_.load_relaxed(); }
  // What a forked child's parent had chosen, before anything is in memory.
  Status inherit(uint64_t bytes);
  // ENOTSUP where it cannot change; EINVAL outside of what is possible, EBUSY when pinned ranges do not leave room to
  // go on with less. ETIMEDOUT when the new one holds but not all above it could be evicted in time
  // (SharedCache::evict_to_limit).
  Status choose(uint64_t bytes);
  // From now on: so many bytes of it are native memory's, and no more frames than these are in use. EBUSY, and nothing
  // changes, while pinned ranges would not leave room to go on.
  Status leave(uint64_t native_bytes, uint64_t frames_max);

 private:
  // Under mutex_.
  Status apply(uint64_t bytes, uint64_t native_bytes, uint64_t frames_max);

  const Options& options_;
  const Parts parts_;
  std::mutex mutex_;
  Atomic<uint64_t> chosen_bytes_{options_.memory_bytes};
  uint64_t native_bytes_ = 0;
  uint64_t frames_max_ = UINT64_MAX;
};

}  // namespace spw::process
