// What regions and the heap ask of whoever caches their blocks, by block range. An access::Engine does it, over the
// cache and what it keeps of a range itself; tests record the calls.
//
// Threads: any.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/status.h"
#include "store/store.h"

namespace spw::region {

class CacheRanges {
 public:
  virtual ~CacheRanges() = default;
  // The range, `has_contents` or all zeros, is about to be live, and then
  // `live_bytes` are in all. Called under the region map's lock.
  virtual void grow(BlockId first, uint64_t count, uint64_t live_bytes, bool has_contents) = 0;
  // It is live now, under the same lock; nobody has been told its address.
  virtual void grown(BlockId first, uint64_t count) = 0;
  // Drops the range without a write. When it returns, no fill or writeback of the range is in flight, and the next
  // access to a block of it sees what BlockSource says then, even where a SATC still held the block.
  virtual void discard(BlockId first, uint64_t count) = 0;
  // Writes what is dirty in the range.
  virtual Status flush(BlockId first, uint64_t count) = 0;
  // flush(), and syncs the range's stores.
  virtual Status sync(BlockId first, uint64_t count) = 0;
  virtual void prefetch(BlockId first, uint64_t count) = 0;
  // No block of `store` is cached any more and it is about to be destroyed: close what is open on it.
  virtual void forget(store::Store& store) = 0;
};

}  // namespace spw::region
