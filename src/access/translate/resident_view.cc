#include "access/translate/resident_view.h"

#include <algorithm>
#include <bit>

#include "abi/managed.h"
#include "access/translate/map_frames.h"
#include "base/check.h"
#include "base/units.h"
#include "platform/machine.h"
#include "platform/memory.h"

namespace spw::access {

using cache::Access;

namespace {

uint64_t bits_between(unsigned begin, unsigned end) {
  return (~uint64_t{0} >> (64 - (end - begin))) << begin;
}

}  // namespace

ResidentView::ResidentView(cache::SharedCache& cache, cache::BlockSource& blocks,
                           const platform::File& frames, unsigned block_shift)
    : cache_(cache),
      blocks_(blocks),
      frames_(frames),
      block_shift_(block_shift),
      window_blocks_(static_cast<unsigned>(
          std::clamp<uint64_t>(kViewWindowBytesMax >> block_shift, 1, kWindowBlocksMax))),
      partitions_(cache.partition_map()),
      mappings_max_(platform::mappings_max() / kViewMappingsShare * kViewMappingsParts),
      shards_(std::make_unique<Shard[]>(partitions_.count())) {
  static_assert(kWindowBlocksMax <= cache::kGroupBlocks);  // so that a window lies in one partition
}

std::byte* ResidentView::address_of(uint64_t block) const {
  return reinterpret_cast<std::byte*>(SPW_MANAGED_BASE + (block << block_shift_));
}

Result<ResidentView::Admission> ResidentView::admit(cache::Client& client, uintptr_t address, bool store) {
  const BlockId block((address - SPW_MANAGED_BASE) >> block_shift_);
  const cache::Backing backing = blocks_.locate_for_fill(block);
  if (backing.store == nullptr) return Admission::kEnded;
  const bool is_zero = !backing.has_contents;
  Shard& shard = shard_of(block);
  bool touched_before;
  {
    std::lock_guard lock(shard.mutex);
    if (!active_.load_relaxed()) return Admission::kEnded;
    const auto entry = shard.windows.find(window_of(block));
    touched_before = entry != shard.windows.end();
    if (touched_before && entry->second.holds(index_of(block)))
      return admit_known(client, entry->second, block, store);
  }
  // Without the lock: for want of a frame the pin may end the view.
  if (is_zero)
    cache_.bring_in_zeros(client, block);
  else if (touched_before)
    cache_.prefetch(client, BlockId(window_of(block)), window_blocks_);
  cache::Pin pin;
  Status status = cache_.pin(client, block, store || is_zero ? Access::kWrite : Access::kRead, &pin);
  if (!status) return status;
  std::lock_guard lock(shard.mutex);
  // Freed meanwhile, it has been withdrawn already: nobody would take it out any more.
  if (!active_.load_relaxed() || blocks_.locate_for_fill(block).store == nullptr) {
    cache_.unpin(client, pin.frame);
    return Admission::kEnded;
  }
  auto [entry, is_new] = shard.windows.try_emplace(window_of(block));
  if (is_new) windows_.fetch_add_relaxed(1);
  Window& window = entry->second;
  if (window.holds(index_of(block))) {
    cache_.unpin(client, pin.frame);
    return admit_known(client, window, block, store);
  }
  const uint64_t was_mapped = window.mapped, mappings_before = mappings_of(window);
  window.add(index_of(block), pin.frame, store || is_zero);
  pin_neighbours(client, window, block, is_zero);
  return map(window_of(block), window, window.mapped & ~was_mapped, mappings_before);
}

// Another thread was quicker, or this is the first store to it.
ResidentView::Admission ResidentView::admit_known(cache::Client& client, Window& window, BlockId block,
                                                  bool store) {
  const uint64_t bit = uint64_t{1} << index_of(block);
  if (!store || window.writable & bit) return Admission::kServed;
  const uint64_t mappings_before = mappings_of(window);
  cache_.mark_dirty(client, window.frames[index_of(block)]);
  window.writable |= bit;
  return map(window_of(block), window, bit, mappings_before);
}

// Those that are there already: brought in just now, by the cache's own reading ahead, or used before.
void ResidentView::pin_neighbours(cache::Client& client, Window& window, BlockId block, bool is_zero) {
  const uint64_t first = window_of(block);
  const bool all = is_zero || std::popcount(window.mapped) > 1;
  const unsigned count = all ? window_blocks_ : std::min(kFirstTouchBlocks, window_blocks_);
  const unsigned begin = index_of(block) & ~(count - 1);
  for (unsigned i = begin; i < begin + count; ++i) {
    if (window.holds(i)) continue;
    const cache::Backing backing = blocks_.locate_for_fill(BlockId(first + i));
    if (backing.store == nullptr || backing.has_contents == is_zero) continue;
    cache::Pin pin;
    if (cache_.pin_present(client, BlockId(first + i), is_zero ? Access::kWrite : Access::kRead, &pin))
      window.add(i, pin.frame, is_zero);
  }
}

// What the kernel keeps for the window: its runs, and what lies between them.
uint64_t ResidentView::mappings_of(const Window& window) const {
  if (window.mapped == 0) return 0;
  uint64_t count = 1;
  for (unsigned i = 1; i < window_blocks_; ++i) count += !window.joins(i);
  return count;
}

// One call for each run of frames side by side with the same rights.
// Where the kernel refuses, what is not mapped faults again.
ResidentView::Admission ResidentView::map(uint64_t first_block, const Window& window, uint64_t bits,
                                          uint64_t mappings_before) {
  bool is_mapped = true;
  for (unsigned begin = 0; is_mapped && begin < window_blocks_;) {
    unsigned end = begin + 1;
    if (bits >> begin & 1) {
      while (end < window_blocks_ && (bits >> end & 1) && window.joins(end)) ++end;
      is_mapped = map_run(first_block, window, begin, end);
    }
    begin = end;
  }
  mappings_.fetch_add_relaxed(mappings_of(window) - mappings_before);
  return is_mapped && mappings_.load_relaxed() < mappings_max_ ? Admission::kServed : Admission::kFull;
}

bool ResidentView::map_run(uint64_t first_block, const Window& window, unsigned begin, unsigned end) {
  const bool writable = window.is_writable(begin);
  void* address = address_of(first_block + begin);
  const uint64_t bytes = uint64_t{end - begin} << block_shift_;
  return map_frames(address, frames_, window.frames[begin], bytes, block_shift_, writable).is_ok();
}

void ResidentView::unpin(cache::Client& client, Window& window, uint64_t bits) {
  bits &= window.mapped;
  for (uint64_t left = bits; left != 0; left &= left - 1)
    cache_.unpin(client, window.frames[std::countr_zero(left)]);
  window.mapped &= ~bits;
  window.writable &= ~bits;
}

Status ResidentView::withdraw(cache::Client& client, BlockId first, uint64_t count) {
  if (!is_active()) return {};
  const uint64_t end = first.value + count;
  for (uint64_t start = window_of(first); start < end; start += window_blocks_) {
    Shard& shard = shard_of(BlockId(start));
    std::lock_guard lock(shard.mutex);
    const auto entry = shard.windows.find(start);
    if (entry == shard.windows.end()) continue;
    const auto from = static_cast<unsigned>(std::max(first.value, start) - start);
    const auto to = static_cast<unsigned>(std::min(end, start + window_blocks_) - start);
    Window& window = entry->second;
    // One call for the whole piece: what is not mapped is without access anyway.
    if (Status s = platform::release_at(address_of(start + from), uint64_t{to - from} << block_shift_); !s)
      return s;
    const uint64_t mappings_before = mappings_of(window);
    unpin(client, window, bits_between(from, to));
    mappings_.fetch_add_relaxed(mappings_of(window) - mappings_before);
    if (window.mapped != 0) continue;
    shard.windows.erase(entry);
    windows_.fetch_sub_relaxed(1);
  }
  return {};
}

Status ResidentView::end(cache::Client& client) {
  std::vector<std::unique_lock<std::mutex>> locks;
  for (uint32_t p = 0; p < partitions_.count(); ++p) locks.emplace_back(shards_[p].mutex);
  if (!active_.load_relaxed()) return {};
  std::vector<uint64_t> starts;
  for (uint32_t p = 0; p < partitions_.count(); ++p)
    for (const auto& [start, window] : shards_[p].windows) starts.push_back(start);
  std::sort(starts.begin(), starts.end());
  for (size_t i = 0; i < starts.size();) {
    size_t behind = i + 1;
    while (behind < starts.size() && starts[behind] == starts[behind - 1] + window_blocks_) ++behind;
    const uint64_t bytes = (behind - i) * uint64_t{window_blocks_} << block_shift_;
    if (Status s = platform::release_at(address_of(starts[i]), bytes); !s) return s;
    i = behind;
  }
  for (uint32_t p = 0; p < partitions_.count(); ++p) {
    for (auto& [start, window] : shards_[p].windows) unpin(client, window, window.mapped);
    Shard::Windows().swap(shards_[p].windows);
  }
  windows_.store_relaxed(0);
  mappings_.store_relaxed(0);
  // Last: who sees it asks nobody here any more. An alias may be
  // mapped where the view was, a range that was in it is discarded.
  active_.store_release(false);
  return {};
}

}  // namespace spw::access
