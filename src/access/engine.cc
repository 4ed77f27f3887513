#include "access/engine.h"

#include "base/in_runtime.h"

namespace spw::access {

void Engine::discard(BlockId first, uint64_t count) {
  InRuntime guard;
  if (!withdraw(first, count)) cache_->discard(client(), first, count);
}

Status Engine::flush(BlockId first, uint64_t count) {
  InRuntime guard;
  if (!is_watching()) return {};
  before_flush(first, count);
  return cache_->flush(client(), first, count);
}

Status Engine::sync(BlockId first, uint64_t count) {
  InRuntime guard;
  Status status;
  if (!is_watching() && sync_unwatched(first, count, &status)) return status;
  before_flush(first, count);
  return cache_->sync(client(), first, count);
}

void Engine::prefetch(BlockId first, uint64_t count) {
  InRuntime guard;
  if (is_watching()) cache_->prefetch(client(), first, count);
}

void Engine::forget(store::Store& store) {
  InRuntime guard;
  cache_->close_store(client(), store);
}

}  // namespace spw::access
