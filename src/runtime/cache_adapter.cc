#include "runtime/cache_adapter.h"

#include "base/in_runtime.h"

namespace spw::runtime {

void CacheAdapter::discard(BlockId first, uint64_t count) {
  InRuntime guard;
  engine_.withdraw(first, count);
  cache_.discard(engine_.client(), first, count);
}

Status CacheAdapter::flush(BlockId first, uint64_t count) {
  InRuntime guard;
  return cache_.flush(engine_.client(), first, count);
}

Status CacheAdapter::sync(BlockId first, uint64_t count) {
  InRuntime guard;
  return cache_.sync(engine_.client(), first, count);
}

void CacheAdapter::prefetch(BlockId first, uint64_t count) {
  InRuntime guard;
  cache_.prefetch(engine_.client(), first, count);
}

void CacheAdapter::forget(store::Store& store) {
  InRuntime guard;
  cache_.close_store(engine_.client(), store);
}

}  // namespace spw::runtime
