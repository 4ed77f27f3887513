#include "front/mapped/staging.h"

#include "base/in_runtime.h"

namespace spw::front {

std::byte* Staging::take(Kind kind) {
  InRuntime guard;
  std::lock_guard lock(mutex_);
  const size_t k = index(kind);
  if (!idle_[k].empty()) {
    std::byte* buffer = idle_[k].back();
    idle_[k].pop_back();
    return buffer;
  }
  if (left_[k] == 0) return nullptr;
  auto made = platform::map_anonymous(bytes_[k]);
  if (!made) return nullptr;
  --left_[k];
  memory_.push_back(std::move(*made));
  return memory_.back().data();
}

void Staging::give_back(Kind kind, std::byte* buffer) {
  InRuntime guard;
  std::lock_guard lock(mutex_);
  idle_[index(kind)].push_back(buffer);
}

uint64_t Staging::mapped_bytes() const {
  std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const platform::Mapping& mapping : memory_) sum += mapping.bytes();
  return sum;
}

}  // namespace spw::front
