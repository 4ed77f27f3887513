#include "files/dirty_blocks.h"

#include "platform/time.h"

namespace spw::files {

void DirtyBlocks::note_run(uint64_t number, uint64_t count) {
  std::atomic_thread_fence(
      std::memory_order_seq_cst);  // the blocks' dirty bits come before this look at the tags
  uint32_t dirtied = 0;
  const bool has_room =
      count == 1 ? index_.insert_dirty(number, &dirtied) : index_.insert_dirty_run(number, count, &dirtied);
  if (!has_room) is_complete_.store_release(false);
  if (dirtied == 0 && is_complete()) return;
  add(dirtied);
  if (since_ns_.load_relaxed() == 0) since_ns_.store_relaxed(platform::monotonic_ns());
}

void DirtyBlocks::end_flush() {
  const bool is_any_dirty = count() > 0 || !is_complete();
  if (is_any_dirty && since_ns_.load_relaxed() == 0) since_ns_.store_relaxed(platform::monotonic_ns());
}

void DirtyBlocks::start_over() {
  forget_from(0);
  since_ns_.store_relaxed(0);
  is_complete_.store_release(true);
}

void DirtyBlocks::dirtied(uint64_t offset_bytes, uint64_t count) {
  if (count > 0) note_run(offset_bytes >> block_shift_, count);
}

void DirtyBlocks::cleaned(uint64_t offset_bytes, BlockId first, std::span<const FrameId> frames) {
  const uint64_t number = offset_bytes >> block_shift_;
  writebacks_.fetch_add_relaxed(1);  // before the count (release), which is read first
  take(index_.clear_dirty(number, frames.size(), [&](uint64_t index) {
    const uint64_t i = index - number;
    return cache_.holds_dirty({frames[i], first + i});
  }));
  index_.erase_clean(number, frames.size());
}

void DirtyBlocks::forget_from(uint64_t number) {
  take(index_.clear_dirty(number, UINT64_MAX, [](uint64_t) { return false; }));
  index_.erase_clean(number, UINT64_MAX);
}

}  // namespace spw::files
