#include "process/memory_limit.h"

#include <algorithm>
#include <string>

#include "base/in_runtime.h"
#include "base/units.h"

namespace spw::process {

uint64_t MemoryLimit::bytes() const {
  if (options_.memory_is_auto)
    return options_.memory_bytes -
           uint64_t{parts_.cache.frame_count() - parts_.cache.frame_limit()} * options_.block_bytes;
  return chosen_bytes();
}

Status MemoryLimit::inherit(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (Status status = apply(bytes, native_bytes_, frames_max_); !status) return status;
  chosen_bytes_.store_relaxed(bytes);
  return {};
}

Status MemoryLimit::choose(uint64_t bytes) {
  if (!parts_.can_change)
    return Status::sentence(ENOTSUP, options_.memory_is_auto
                                         ? "with the option memory=auto the cap follows the machine"
                                         : "the translated engine keeps the cap that it started with");
  if (bytes > options_.memory_bytes)
    return Status::sentence(
        EINVAL, "the cap cannot be above that of the start, " + format_size(options_.memory_bytes));
  InRuntime guard;
  parts_.engine.watch();
  if (Status status = inherit(bytes); !status) return status;
  return parts_.cache.evict_to_limit(parts_.engine.client());
}

Status MemoryLimit::leave(uint64_t native_bytes, uint64_t frames_max) {
  std::lock_guard lock(mutex_);
  if (Status status = apply(chosen_bytes(), native_bytes, frames_max); !status) return status;
  native_bytes_ = native_bytes;
  frames_max_ = frames_max;
  return {};
}

Status MemoryLimit::apply(uint64_t bytes, uint64_t native_bytes, uint64_t frames_max) {
  const uint64_t all = parts_.cache.frame_count();
  const uint64_t gone = round_up(options_.memory_bytes - bytes, options_.block_bytes) / options_.block_bytes;
  if (gone + kCapFramesMin > all)
    return Status::sentence(
        EINVAL, "the cap cannot be below " +
                    format_size(options_.memory_bytes - (all - kCapFramesMin) * options_.block_bytes));
  const uint64_t chosen = all - gone;
  const uint64_t native = std::min(native_bytes / options_.block_bytes, chosen - kCapFramesMin);
  const auto frames = static_cast<uint32_t>(std::min(chosen - native, std::max(frames_max, kCapFramesMin)));
  if (Status status = parts_.pinned.change_limit(frames); !status) return status;
  if (parts_.page_cache_share != nullptr) parts_.page_cache_share->set_ceiling(frames);
  return {};
}

}  // namespace spw::process
