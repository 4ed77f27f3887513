// Ranges of managed memory that the program keeps in memory until it says otherwise, whatever the eviction policy
// thinks (UMap's hybrid caching). Every block of a range holds one reference in the cache.
//
// Invariant: charged_[p] = blocks of partition p in all ranges, those being pinned included, <= budget() budget() =
//   half of the frames that the smallest partition may use: the other half stays for everybody else's misses.
// A block in two ranges counts twice.
// Threads: any. Blocks are brought in without the lock. Lifetime: shorter than the cache's and the engine's.
// Limits: the budget; ENOMEM beyond. Mapped engine only: the translated one plans for its own pins.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "access/engine.h"
#include "base/ids.h"
#include "base/status.h"
#include "cache/cache.h"

namespace spw::process {

class PinnedRanges {
 public:
  // `limit_min`: frames that the cache's limit may fall to by itself.
  PinnedRanges(cache::SharedCache& cache, access::Engine& engine, unsigned block_shift, uint32_t limit_min);

  // The blocks of [first, first + count), all live. When it returns they are in memory.
  Status pin(BlockId first, uint64_t count);
  // One that was pinned with these very bounds; EINVAL otherwise.
  Status unpin(BlockId first, uint64_t count);
  // Every range that has a block in [first, first + count).
  void unpin_all_within(BlockId first, uint64_t count);
  uint64_t blocks() const;

  // SharedCache::set_frame_limit(); EBUSY where what is pinned would be over the budget.
  Status change_limit(uint32_t frames);

 private:
  struct Range {
    uint64_t count = 0;
    std::vector<FrameId> frames;
  };
  using Table = std::multimap<BlockId, Range>;

  uint32_t budget(uint32_t frame_limit) const;
  std::vector<uint32_t> charges_of(BlockId first, uint64_t count) const;
  Status charge(BlockId first, uint64_t count);
  void release(BlockId first, const Range& range);

  cache::SharedCache& cache_;
  access::Engine& engine_;
  const unsigned block_shift_;
  const uint32_t limit_min_;
  const cache::PartitionMap partitions_;
  mutable std::mutex mutex_;
  std::vector<uint32_t> charged_;  // by partition
  Table ranges_;
};

}  // namespace spw::process
