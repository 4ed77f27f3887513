#include "runtime/cache_adapter.h"

#include "abi/abi.h"

namespace spw::runtime {

void CacheAdapter::discard(BlockId first, uint64_t count) {
  engine_.withdraw_foreign(SPW_MANAGED_BASE + (first.value << block_shift_), count << block_shift_);
  front::Translator& translator = engine_.translator();
  translator.drop(first, count);
  cache_.discard(translator.client(), first, count);
}

Status CacheAdapter::sync(BlockId first, uint64_t count) {
  return cache_.sync(engine_.translator().client(), first, count);
}

void CacheAdapter::prefetch(BlockId first, uint64_t count) {
  cache_.prefetch(engine_.translator().client(), first, count);
}

void CacheAdapter::forget(store::Store& store) { cache_.close_store(engine_.translator().client(), store); }

}  // namespace spw::runtime
