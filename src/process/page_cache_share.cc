#include "process/page_cache_share.h"

#include <algorithm>

#include "base/units.h"
#include "platform/time.h"
#include "process/memory_adapter.h"
#include "process/options.h"

namespace spw::process {

namespace {

// What is present is an estimate, so a side may seem to have brought in less than before.
double brought_since(const ShareRule::Side& last, const ShareRule::Side& now) {
  return static_cast<double>(std::max(now.brought_bytes, last.brought_bytes) - last.brought_bytes);
}

}  // namespace

uint64_t ShareRule::next(uint64_t cap_bytes, const Side& mappings, const Side& frames, bool frames_can_evict,
                         uint64_t now_ns) {
  const uint64_t held = mappings.held_bytes + frames.held_bytes;
  const uint64_t free = cap_bytes - std::min(cap_bytes, held);
  const uint64_t least = cap_bytes / kShareMin;
  is_pressed_ = free < cap_bytes / kSlackShare && frames.held_bytes > least;
  if (!is_pressed_) {
    const uint64_t kept = std::min(frames.held_bytes + free / 2, cap_bytes);
    share_bytes_ = cap_bytes - std::max(kept, frames_can_evict ? least : 0);
  } else if (is_step_due(now_ns)) {
    const double brought_mapped = brought_since(last_mappings_, mappings);
    const double brought_framed = brought_since(last_frames_, frames);
    // size / rate compared without a division: a rate may be 0, and where both are, nothing moves.
    const double mapped_age = static_cast<double>(mappings.held_bytes) * brought_framed;
    const double framed_age = static_cast<double>(frames.held_bytes) * brought_mapped;
    const uint64_t step = cap_bytes / kStepShare;
    if (mapped_age < framed_age) share_bytes_ += step;
    if (mapped_age > framed_age) share_bytes_ -= std::min(step, share_bytes_);
  }
  if (is_step_due(now_ns)) {
    step_ns_ = now_ns;
    last_mappings_ = mappings;
    last_frames_ = frames;
  }
  if (is_pressed_) share_bytes_ = std::clamp(share_bytes_, least, cap_bytes - least);
  return share_bytes_;
}

PageCacheShare::PageCacheShare(cache::SharedCache& cache, access::Engine& engine,
                               const region::RegionMap& regions, uint64_t frame_bytes, SetLimit set_limit)
    : cache_(cache),
      engine_(engine),
      regions_(regions),
      frame_bytes_(frame_bytes),
      set_limit_(std::move(set_limit)),
      ceiling_(cache.frame_limit()) {}

// While the kernel has managed memory alone, all that is live counts.
uint64_t PageCacheShare::held_by_frames() const {
  return engine_.is_watching() ? cache_.used_frames() * frame_bytes_ : regions_.live_bytes();
}

uint64_t PageCacheShare::limit_pages(const page_cache::Use& use) {
  std::lock_guard lock(mutex_);
  const uint64_t cap_bytes = ceiling_ * frame_bytes_;
  const ShareRule::Side mappings{use.total() * kMmuPageBytes, (use.dropped + use.total()) * kMmuPageBytes};
  const uint64_t now_ns = platform::monotonic_ns();
  // The counters of all threads: too many to be read at each look.
  if (rule_.is_step_due(now_ns)) brought_by_frames_ = filled_blocks() * frame_bytes_;
  const uint64_t share_bytes =
      rule_.next(cap_bytes, mappings, {held_by_frames(), brought_by_frames_}, engine_.is_watching(), now_ns);
  mapped_bytes_.store_relaxed(mappings.held_bytes);
  is_pressed_.store_relaxed(rule_.is_pressed());
  if (!engine_.is_watching() && rule_.is_pressed()) engine_.watch();
  if (engine_.is_watching()) {
    const uint64_t frames = std::max((cap_bytes - share_bytes) / frame_bytes_, kCapFramesMin);
    const uint64_t now = cache_.frame_limit();
    const uint64_t change = frames > now ? frames - now : now - frames;
    if (change > ceiling_ / ShareRule::kStepShare / 2) (void)set_limit_(static_cast<uint32_t>(frames));
  }
  return share_bytes / kMmuPageBytes;
}

void PageCacheShare::set_ceiling(uint32_t frames) {
  std::lock_guard lock(mutex_);
  ceiling_ = frames;
}

}  // namespace spw::process
