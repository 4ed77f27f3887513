// The shared cache as regions and the heap see it: by block range, with the calling thread's client, and with whatever
// the engine still holds of a range taken into account.
//
// Threads: any. Lifetime: shorter than the cache's and the engine's.
#pragma once

#include "access/engine.h"
#include "cache/cache.h"
#include "region/cache_ranges.h"

namespace spw::process {

class CacheAdapter final : public region::CacheRanges {
 public:
  CacheAdapter(cache::SharedCache& cache, access::Engine& engine) : cache_(cache), engine_(engine) {}

  void grow(BlockId first, uint64_t count, uint64_t live_bytes, bool has_contents) override;
  void grown(BlockId first, uint64_t count) override { engine_.grown(first, count); }
  void discard(BlockId first, uint64_t count) override;
  Status flush(BlockId first, uint64_t count) override;
  Status sync(BlockId first, uint64_t count) override;
  void prefetch(BlockId first, uint64_t count) override;
  void forget(store::Store& store) override;

 private:
  cache::SharedCache& cache_;
  access::Engine& engine_;
};

}  // namespace spw::process
