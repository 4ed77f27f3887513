#include "cache/frame_pool/staging.h"

#include <algorithm>

#include "base/in_runtime.h"
#include "base/units.h"

namespace spw::cache {

std::byte* StagingBuffers::take(Kind kind) {
  InRuntime guard;
  std::lock_guard lock(mutex_);
  return take_locked(kind);
}

std::byte* StagingBuffers::take_locked(Kind kind) {
  const size_t k = index(kind);
  if (!idle_[k].empty()) {
    std::byte* buffer = idle_[k].back();
    idle_[k].pop_back();
    return buffer;
  }
  if (kind == Kind::kPiece) return cut_run();
  if (left_[k] == 0) return nullptr;
  return kind == Kind::kRun ? make_runs() : make(bytes_[k], kMmuPageBytes, 1, k);
}

// As many as lie in one huge page: a device takes memory that lies together in fewer pieces, and faster for it.
std::byte* StagingBuffers::make_runs() {
  constexpr auto k = static_cast<size_t>(Kind::kRun);
  const uint64_t together = std::clamp<uint64_t>(kHugePageBytes / bytes_[k], 1, left_[k]);
  return make(together * bytes_[k], kHugePageBytes, together, k);
}

std::byte* StagingBuffers::cut_run() {
  std::byte* const run = cut_left_ > 0 ? take_locked(Kind::kRun) : nullptr;
  if (!run) return nullptr;
  --cut_left_;
  const uint64_t block_bytes = bytes_[index(Kind::kBlock)];
  for (uint64_t at = block_bytes; at < bytes_[index(Kind::kRun)]; at += block_bytes)
    idle_[index(Kind::kPiece)].push_back(run + at);
  return run;
}

std::byte* StagingBuffers::make(uint64_t bytes, uint64_t alignment_bytes, uint64_t count, size_t k) {
  auto made = platform::map_anonymous(bytes, alignment_bytes);
  if (!made) return nullptr;
  // Without any it is memory all the same.
  if (bytes >= kHugePageBytes) (void)platform::advise(made->data(), bytes, platform::Advice::kHugePage);
  left_[k] -= static_cast<uint32_t>(count);
  for (uint64_t i = 1; i < count; ++i) idle_[k].push_back(made->data() + i * bytes_[k]);
  memory_.push_back(std::move(*made));
  return memory_.back().data();
}

void StagingBuffers::give_back(Kind kind, std::byte* buffer) {
  InRuntime guard;
  std::lock_guard lock(mutex_);
  idle_[index(kind)].push_back(buffer);
}

uint64_t StagingBuffers::mapped_bytes() const {
  std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const platform::Mapping& mapping : memory_) sum += mapping.bytes();
  return sum;
}

}  // namespace spw::cache
