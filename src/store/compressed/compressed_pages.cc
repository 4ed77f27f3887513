#include "store/compressed/compressed_pages.h"

#include <algorithm>
#include <cstring>

#include "base/zeros.h"
#include "telemetry/counters.h"

namespace spw::store {

namespace {

using telemetry::count;
using telemetry::Counter;

// Of the budget: free ahead of need.
constexpr uint64_t kAheadShare = 32;
constexpr uint64_t kAheadBytesMin = 4 * ObjectPool::kSlabBytes, kAheadBytesMax = 32 * ObjectPool::kSlabBytes;
// Objects that the hand passes before it gives up for now.
constexpr size_t kPassedMax = 4096;
// While there is no budget, of so many pages one.
constexpr uint64_t kTriedOf = 31;

}  // namespace

Result<std::unique_ptr<CompressedPages>> CompressedPages::create(uint64_t store_bytes, PageCodec& codec,
                                                                 PoolBudget& budget) {
  std::unique_ptr<CompressedPages> made(new CompressedPages(codec));
  auto pool = ObjectPool::create(budget);
  if (!pool) return pool.status();
  made->pool_ = std::move(*pool);
  if (Status status = made->entries_.allocate(store_bytes); !status) return status;
  return made;
}

CompressedPages::Found CompressedPages::read(uint64_t page, std::byte* to) {
  Entry* const entry = entries_.find(page);
  if (entry == nullptr) return Found::kOnDevice;
  std::lock_guard lock(lock_of(page));
  if (entry->kind == kOnDevice) return Found::kOnDevice;
  count(Counter::compressed_hits);
  if (entry->kind == kZero) {
    std::memset(to, 0, kPageBytes);
    return Found::kHere;
  }
  entry->was_read = 1;
  const std::byte* const held = pool_->contents(entry->place);
  if (entry->bytes < kPageBytes) return codec_.open(held, entry->bytes, to) ? Found::kHere : Found::kDamaged;
  std::memcpy(to, held, kPageBytes);
  return Found::kHere;
}

bool CompressedPages::is_here(uint64_t page) {
  Entry* const entry = entries_.find(page);
  if (entry == nullptr) return false;
  std::lock_guard lock(lock_of(page));
  return entry->kind != kOnDevice;
}

bool CompressedPages::is_worth_a_try(uint64_t page) {
  // Only to know whether a budget would be of use.
  if (pool_->budget().bytes_max.load_relaxed() == 0) return page % kTriedOf == 0;
  Atomic<uint8_t>& misfits = misfits_[page / kRegionPages % kRegions];
  const uint8_t now = misfits.load_relaxed();
  if (now < kMisfitsMax) return true;
  const bool is_probe = now >= kMisfitsMax + kProbeEvery - 1;
  misfits.store_relaxed(is_probe ? kMisfitsMax : static_cast<uint8_t>(now + 1));
  return is_probe;
}

void CompressedPages::note_fit(uint64_t page, bool fits) {
  Atomic<uint8_t>& misfits = misfits_[page / kRegionPages % kRegions];
  const uint8_t now = misfits.load_relaxed();
  if (fits && now != 0) misfits.store_relaxed(0);
  if (!fits && now < kMisfitsMax) misfits.store_relaxed(static_cast<uint8_t>(now + 1));
}

// What it held is given up, whatever comes of it.
void CompressedPages::drop(Entry& entry) {
  if (entry.kind == kHeld) pool_->give_back(entry.place);
  if (entry.is_leaving != 0) entry.has_changed = 1;
  entry.is_on_device = 0;
  entry.was_read = 0;
}

// The device will have what counts, unless a write is under way that would spoil it. True: something has to stay here
// instead, so that is_leaving => kind != kOnDevice.
bool CompressedPages::leave_device(Entry& entry) {
  drop(entry);
  entry.kind = kOnDevice;
  return entry.is_leaving != 0;
}

void CompressedPages::put(Entry& entry, uint64_t page, const std::byte* bytes, size_t size, bool is_forced) {
  const auto place = pool_->take(size, page, is_forced);
  if (!place) return;
  std::memcpy(pool_->contents(*place), bytes, size);
  entry.kind = kHeld;
  entry.bytes = size;
  entry.place = *place;
}

bool CompressedPages::keep(uint64_t page, const std::byte* contents) {
  if (page >= entries_.pages()) return false;
  if (is_all_zero(contents, kPageBytes)) {
    Entry& entry = entries_.at(page);
    std::lock_guard lock(lock_of(page));
    drop(entry);
    entry.kind = kZero;
    count(Counter::compressed_pages);
    return true;
  }
  const bool tries = is_worth_a_try(page);
  bool is_kept = false;
  const auto take = [&](const std::byte* bytes, size_t size) {
    Entry& entry = entries_.at(page);
    std::lock_guard lock(lock_of(page));
    const bool must_stay = leave_device(entry);
    if (size > 0) put(entry, page, bytes, size, false);
    if (entry.kind == kOnDevice && must_stay) put(entry, page, contents, kPageBytes, true);
    is_kept = entry.kind == kHeld;
    if (!is_kept) return;
    count(Counter::compressed_pages);
    count(Counter::compressed_bytes, entry.bytes);
  };
  if (!tries) {
    if (pool_->budget().bytes_max.load_relaxed() > 0) count(Counter::compression_misfits);
    take(nullptr, 0);
    return is_kept;
  }
  codec_.compress(contents, ObjectPool::kObjectBytesMax, [&](const std::byte* bytes, size_t size) {
    note_fit(page, size > 0);
    if (size == 0) count(Counter::compression_misfits);
    take(bytes, size);
  });
  return is_kept;
}

void CompressedPages::keep_what_was_read(uint64_t page, const std::byte* contents) {
  if (page >= entries_.pages() || !evicts_ || is_short() || !is_worth_a_try(page)) return;
  codec_.compress(contents, ObjectPool::kObjectBytesMax, [&](const std::byte* bytes, size_t size) {
    note_fit(page, size > 0);
    if (size == 0) return;
    Entry& entry = entries_.at(page);
    std::lock_guard lock(lock_of(page));
    if (entry.kind != kOnDevice) return;
    put(entry, page, bytes, size, false);
    entry.is_on_device = entry.kind == kHeld;
  });
}

void CompressedPages::discard(uint64_t first, uint64_t count_pages) {
  const uint64_t end = std::min(first + std::min(count_pages, entries_.pages()), entries_.pages());
  for (uint64_t page = first; page < end; ++page) {
    Entry* const entry = entries_.find(page);
    if (entry == nullptr) {
      page |= PageTable<Entry>::kLeafPages - 1;  // on to the next leaf
      continue;
    }
    std::lock_guard lock(lock_of(page));
    if (entry->kind != kOnDevice && leave_device(*entry)) entry->kind = kZero;
  }
}

bool CompressedPages::is_short() const {
  const PoolBudget& budget = pool_->budget();
  return !pool_->has_room(
      std::clamp(budget.bytes_max.load_relaxed() / kAheadShare, kAheadBytesMin, kAheadBytesMax));
}

std::optional<CompressedPages::Leaving> CompressedPages::begin_eviction(std::byte* buffer) {
  std::lock_guard hand(hand_mutex_);
  if (!evicts_) return std::nullopt;
  for (size_t passed = 0; passed < kPassedMax && is_short(); ++passed) {
    const auto found = pool_->next(kPassedMax);
    if (!found) return std::nullopt;
    if (const auto leaving = take_group(*found, buffer)) return leaving;
  }
  return std::nullopt;
}

std::optional<CompressedPages::Leaving> CompressedPages::take_group(const ObjectPool::Found& found,
                                                                    std::byte* buffer) {
  Leaving leaving{found.page / kGroupPages * kGroupPages, 0};
  std::lock_guard lock(lock_of(found.page));
  Entry* const first = entries_.find(found.page);
  if (first == nullptr || first->kind != kHeld || first->place != found.place || first->is_leaving != 0)
    return std::nullopt;
  if (first->was_read != 0) {
    first->was_read = 0;
    return std::nullopt;
  }
  for (uint64_t i = 0; i < kGroupPages; ++i) {
    Entry* const entry = entries_.find(leaving.first_page + i);
    if (entry == nullptr || entry->kind != kHeld || entry->is_leaving != 0 || entry->was_read != 0) continue;
    std::byte* const to = buffer + i * kPageBytes;
    if (entry->is_on_device != 0) {
      (void)leave_device(*entry);
      continue;
    }
    const std::byte* const held = pool_->contents(entry->place);
    if (entry->bytes == kPageBytes)
      std::memcpy(to, held, kPageBytes);
    else if (!codec_.open(held, entry->bytes, to))
      continue;  // it changed while it was compressed, so it is about to be written again
    entry->is_leaving = 1;
    entry->has_changed = 0;
    leaving.pages |= 1u << i;
  }
  if (leaving.pages == 0) return std::nullopt;
  return leaving;
}

void CompressedPages::end_eviction(const Leaving& leaving, bool are_written) {
  std::lock_guard lock(lock_of(leaving.first_page));
  for (uint64_t i = 0; i < kGroupPages; ++i) {
    if ((leaving.pages >> i & 1) == 0) continue;
    Entry& entry = entries_.at(leaving.first_page + i);
    entry.is_leaving = 0;
    if (!are_written || entry.has_changed != 0) continue;
    (void)leave_device(entry);
    count(Counter::compressed_evictions);
  }
}

void CompressedPages::lock_for_fork() {
  hand_mutex_.lock();
  for (platform::SmallLock& each : locks_) each.lock();
  pool_->lock_for_fork();
}

void CompressedPages::unlock_after_fork() {
  pool_->unlock_after_fork();
  for (platform::SmallLock& each : locks_) each.unlock();
  hand_mutex_.unlock();
}

// Writes that were under way are its parent's: here their pages stay.
void CompressedPages::in_child() {
  evicts_ = false;
  unlock_after_fork();
}

void CompressedPages::check_invariants() { pool_->check_invariants(); }

}  // namespace spw::store
