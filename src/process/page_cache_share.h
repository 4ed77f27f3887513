// How the cap is divided between the cache's frames and the mappings
// that the kernel's page cache serves (page_cache/mappings.h).
//
// Each side grows into what is free of the cap. When less than a kSlackShare of it is free, the shares
// follow the pages' ages: a side that holds `size` and brings in `rate` a second evicts what has been
// there for size / rate, and the side whose victims are older gives way, by kStepShare of the cap every
// kStepNs, between kShareMin of the cap and the rest. Equal ages are what one LRU list of both would
// have. While managed memory is not watched the engine cannot evict of it: the mappings have what it
// leaves, and it is watched when the mappings need room and it holds more than its least share.
// Threads: limit_pages() in one; set_ceiling() any. Lifetime: shorter than the cache's, the engine's and the regions'.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "access/engine.h"
#include "base/atomic.h"
#include "cache/cache.h"
#include "page_cache/evictor.h"
#include "region/region_map.h"

namespace spw::process {

// The rule alone. Everything in bytes.
class ShareRule {
 public:
  static constexpr uint64_t kSlackShare = 16;
  static constexpr uint64_t kStepShare = 64;
  static constexpr uint64_t kShareMin = 8;
  static constexpr uint64_t kStepNs = 20'000'000;

  struct Side {
    uint64_t held_bytes = 0;
    uint64_t brought_bytes = 0;  // since the start
  };
  // What the mappings may hold of the cap; the frames may hold the rest. Frames that can evict are left their least
  // share even where they hold nothing.
  uint64_t next(uint64_t cap_bytes, const Side& mappings, const Side& frames, bool frames_can_evict,
                uint64_t now_ns);
  // next() will look at what both have brought in; else it does not.
  bool is_step_due(uint64_t now_ns) const { return now_ns - step_ns_ >= kStepNs; }
  // The last answer was given because little was free.
  bool is_pressed() const { return is_pressed_; }

 private:
  uint64_t share_bytes_ = 0;
  bool is_pressed_ = false;
  uint64_t step_ns_ = 0;
  Side last_mappings_, last_frames_;
};

class PageCacheShare {
 public:
  // Changes the cache's limit; may refuse, since what is pinned needs room.
  using SetLimit = std::function<Status(uint32_t frames)>;
  PageCacheShare(cache::SharedCache& cache, access::Engine& engine, const region::RegionMap& regions,
                 uint64_t frame_bytes, SetLimit set_limit);

  uint64_t limit_pages(const page_cache::Use& use);
  // Frames that the cache could use if there were no mappings: what its limit was set to by whoever sets it.
  void set_ceiling(uint32_t frames);
  // As of the last look: what the mappings hold, and whether all of the cap is in use.
  uint64_t mapped_bytes() const { return mapped_bytes_.load_relaxed(); }
  bool is_pressed() const { return is_pressed_.load_relaxed(); }

 private:
  uint64_t held_by_frames() const;

  cache::SharedCache& cache_;
  access::Engine& engine_;
  const region::RegionMap& regions_;
  const uint64_t frame_bytes_;
  const SetLimit set_limit_;
  std::mutex mutex_;
  uint32_t ceiling_;
  uint64_t brought_by_frames_ = 0;  // when a step was last due
  ShareRule rule_;
  Atomic<uint64_t> mapped_bytes_{0};
  Atomic<bool> is_pressed_{false};
};

}  // namespace spw::process
