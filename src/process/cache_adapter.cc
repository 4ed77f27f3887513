#include "process/cache_adapter.h"

#include "base/in_runtime.h"

namespace spw::process {

void CacheAdapter::grow(BlockId first, uint64_t count, uint64_t live_bytes, bool has_contents) {
  InRuntime guard;
  engine_.grow(first, count, live_bytes, has_contents);
}

void CacheAdapter::discard(BlockId first, uint64_t count) {
  InRuntime guard;
  if (engine_.withdraw(first, count)) return;
  cache_.discard(engine_.client(), first, count);
}

Status CacheAdapter::flush(BlockId first, uint64_t count) {
  InRuntime guard;
  if (!engine_.is_watching()) return {};
  engine_.before_flush(first, count);
  return cache_.flush(engine_.client(), first, count);
}

Status CacheAdapter::sync(BlockId first, uint64_t count) {
  InRuntime guard;
  if (!engine_.is_watching()) return {};
  engine_.before_flush(first, count);
  return cache_.sync(engine_.client(), first, count);
}

void CacheAdapter::prefetch(BlockId first, uint64_t count) {
  InRuntime guard;
  if (!engine_.is_watching()) return;
  cache_.prefetch(engine_.client(), first, count);
}

void CacheAdapter::forget(store::Store& store) {
  InRuntime guard;
  cache_.close_store(engine_.client(), store);
}

}  // namespace spw::process
