#include "heap/mappings.h"

#include <algorithm>

#include "abi/abi.h"
#include "base/check.h"
#include "base/units.h"
#include "telemetry/areas.h"

namespace spw::heap {

using region::Kind;

Mappings::Mappings(region::NativeMemory& memory, region::RegionMap& regions, RangeAllocator& ranges)
    : regions_(regions),
      ranges_(ranges),
      pool_(memory),
      table_(PoolAllocator<std::pair<const uintptr_t, Entry>>(pool_)),
      mapped_left_(PoolAllocator<std::pair<const uintptr_t, uint64_t>>(pool_)) {}

uint64_t Mappings::unit_bytes(Kind kind) const {
  return kind == Kind::kAnonymous ? regions_.block_bytes() : region::kChunkBytes;
}

uintptr_t Mappings::map_anonymous(uint64_t bytes, uint64_t alignment) {
  if (bytes > SPW_MANAGED_BYTES) return 0;
  uint64_t unit = unit_bytes(Kind::kAnonymous), mapped = round_up(bytes, kMmuPageBytes);
  uintptr_t address = ranges_.take(round_up(bytes, unit), std::max(unit, alignment));
  if (address == 0) return 0;
  regions_.add_anonymous(address, round_up(bytes, unit));
  telemetry::note_area(address - SPW_MANAGED_BASE, round_up(bytes, unit));
  std::lock_guard lock(mutex_);
  table_.emplace(address, Entry{mapped, Kind::kAnonymous});
  if (mapped % unit != 0) mapped_left_.emplace(round_down(address + mapped, unit), mapped % unit);
  return address;
}

Result<uintptr_t> Mappings::map_file(uint64_t bytes, region::FileMapping file, uint64_t alignment) {
  uint64_t unit = region::kChunkBytes, mapped = round_up(bytes, kMmuPageBytes);
  Kind kind = file.kind;
  uintptr_t address = 0;
  if (bytes <= SPW_MANAGED_BYTES)
    address = ranges_.take_new(round_up(bytes, unit), std::max(unit, alignment));
  if (address == 0) return Status::sentence(ENOMEM, "no managed addresses left for a file mapping");
  if (Status s = regions_.add_file(address, round_up(bytes, regions_.block_bytes()), std::move(file)); !s)
    return s;
  std::lock_guard lock(mutex_);
  table_.emplace(address, Entry{mapped, kind});
  if (mapped % unit != 0) mapped_left_.emplace(round_down(address + mapped, unit), mapped % unit);
  return address;
}

bool Mappings::map_at(uintptr_t address, uint64_t bytes) {
  if (bytes == 0 || bytes > SPW_MANAGED_BYTES) return false;
  const uintptr_t end = address + round_up(bytes, kMmuPageBytes);
  std::lock_guard lock(mutex_);
  std::vector<Gap> gaps, taken;
  auto it = table_.upper_bound(address);
  if (it != table_.begin() && std::prev(it)->first + std::prev(it)->second.bytes > address) --it;
  uintptr_t at = address;
  for (; it != table_.end() && it->first < end; ++it) {
    if (it->second.kind != Kind::kAnonymous) return false;
    if (it->first > at) gaps.push_back({at, it->first});
    at = it->first + it->second.bytes;
  }
  if (at < end) gaps.push_back({at, end});
  const bool is_taken = take_gaps(gaps, &taken);
  for (const Gap& units : taken)
    if (is_taken)
      regions_.add_anonymous(units.begin, units.end - units.begin);
    else
      ranges_.give(units.begin, units.end - units.begin);
  if (is_taken) join(address, end);
  return is_taken;
}

// The pages of gaps between mappings: units that nobody has are taken, of others more pages are mapped. False: some
// are neither; then only `taken` is to be given back.
bool Mappings::take_gaps(std::span<const Gap> gaps, std::vector<Gap>* taken) {
  const uint64_t unit = unit_bytes(Kind::kAnonymous);
  for (const Gap& gap : gaps) {
    for (uintptr_t at = round_down(gap.begin, unit); at < gap.end; at += unit) {
      const auto left = mapped_left_.find(at);
      if (left != mapped_left_.end()) {
        if (regions_.kind_at(at) != Kind::kAnonymous) return false;
        continue;
      }
      uintptr_t to = at + unit;
      while (to < gap.end && !mapped_left_.contains(to)) to += unit;
      if (!ranges_.take_at(at, to - at)) return false;
      taken->push_back({at, to});
      at = to - unit;
    }
  }
  for (const Gap& gap : gaps) {
    for (uintptr_t at = round_down(gap.begin, unit); at < gap.end; at += unit) {
      const uint64_t pages = std::min(gap.end, at + unit) - std::max(gap.begin, at);
      if (pages == unit) continue;
      uint64_t& left = mapped_left_[at];
      left += pages;
      if (left == unit) mapped_left_.erase(at);
    }
  }
  return true;
}

// [begin, end), where there are no other kinds, is one mapping with those that it touches.
void Mappings::join(uintptr_t begin, uintptr_t end) {
  auto it = table_.lower_bound(begin);
  if (it != table_.begin()) {
    const auto before = std::prev(it);
    if (before->second.kind == Kind::kAnonymous && before->first + before->second.bytes >= begin) it = before;
  }
  while (it != table_.end() && it->second.kind == Kind::kAnonymous && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max<uintptr_t>(end, it->first + it->second.bytes);
    it = table_.erase(it);
  }
  table_.emplace(begin, Entry{end - begin, Kind::kAnonymous});
}

Mapping Mappings::find(uintptr_t address, uintptr_t end) const {
  std::lock_guard lock(mutex_);
  auto it = table_.upper_bound(address);
  if (it != table_.begin() && std::prev(it)->first + std::prev(it)->second.bytes > address) --it;
  if (it == table_.end() || it->first >= end) return {};
  return {it->first, it->second.bytes, it->second.kind};
}

void Mappings::unmap(uintptr_t address, uint64_t bytes) {
  uintptr_t end = address + round_up(bytes, kMmuPageBytes);
  // Never a look at nothing: what was unmapped may be part of another
  // thread's mapping by now, which reaches beyond `end`.
  while (address < end) {
    Mapping hit = find(address, end);
    if (hit.kind == Kind::kNone) return;
    uintptr_t from = std::max(address, hit.address), to = std::min(end, hit.end());
    {
      std::lock_guard lock(mutex_);
      auto it = table_.find(hit.address);
      if (it == table_.end() || it->second.bytes != hit.bytes) continue;  // another thread unmaps here too
      if (to < hit.end()) table_.emplace(to, Entry{hit.end() - to, hit.kind});
      if (from > hit.address)
        it->second.bytes = from - hit.address;
      else
        table_.erase(it);
    }
    unmap_within(from, to, hit.kind);
    address = to;
  }
}

// The table knows nothing of [begin, end) any more. Whole units in it go at once, pages at its edges are counted off.
void Mappings::unmap_within(uintptr_t begin, uintptr_t end, Kind kind) {
  uint64_t unit = unit_bytes(kind);
  uintptr_t first_whole = round_up(begin, unit), last_whole = round_down(end, unit);
  if (first_whole > last_whole) return drop_pages(round_down(begin, unit), end - begin, kind);
  if (begin < first_whole) drop_pages(first_whole - unit, first_whole - begin, kind);
  if (last_whole < end) drop_pages(last_whole, end - last_whole, kind);
  if (first_whole < last_whole) give_back(first_whole, last_whole - first_whole, kind);
}

void Mappings::give_back(uintptr_t address, uint64_t bytes, Kind kind) {
  regions_.remove(address, bytes);
  if (kind == Kind::kAnonymous) ranges_.give(address, bytes);
}

void Mappings::drop_pages(uintptr_t unit, uint64_t bytes, Kind kind) {
  uint64_t unit_size = unit_bytes(kind);
  {
    std::lock_guard lock(mutex_);
    auto it = mapped_left_.find(unit);
    if (it == mapped_left_.end()) it = mapped_left_.emplace(unit, unit_size).first;
    SPW_CHECK(it->second >= bytes);
    it->second -= bytes;
    if (it->second > 0) return;
    mapped_left_.erase(it);
  }
  give_back(unit, unit_size, kind);
}

bool Mappings::extend(uintptr_t address, uint64_t old_bytes, uint64_t new_bytes) {
  if (new_bytes > SPW_MANAGED_BYTES) return false;
  std::lock_guard lock(mutex_);
  auto it = table_.upper_bound(address);
  if (it == table_.begin()) return false;
  --it;
  uintptr_t old_end = address + round_up(old_bytes, kMmuPageBytes),
            new_end = address + round_up(new_bytes, kMmuPageBytes);
  if (it->first > address || it->first + it->second.bytes != old_end) return false;
  uint64_t unit = unit_bytes(it->second.kind), block = regions_.block_bytes();
  uintptr_t reserved_end = round_up(old_end, unit), wanted_end = round_up(new_end, unit);
  if (old_end % unit != 0) {  // a unit that other mappings' pages have left cannot be told from one they use
    auto left = mapped_left_.find(round_down(old_end, unit));
    if (left == mapped_left_.end()) return false;
    if (left->second > old_end - std::max(it->first, round_down(old_end, unit))) return false;
  }
  if (wanted_end > reserved_end && !ranges_.take_at(reserved_end, wanted_end - reserved_end)) return false;
  if (old_end % unit != 0) {
    auto left = mapped_left_.find(round_down(old_end, unit));
    left->second += std::min(new_end, reserved_end) - old_end;
    if (left->second == unit) mapped_left_.erase(left);
  }
  if (new_end > reserved_end && new_end % unit != 0)
    mapped_left_.emplace(round_down(new_end, unit), new_end % unit);
  it->second.bytes += new_end - old_end;
  uintptr_t live_end = round_up(old_end, block), live_wanted = round_up(new_end, block);
  if (live_wanted > live_end) regions_.extend(live_end, live_wanted - live_end);
  return true;
}

size_t Mappings::count() const {
  std::lock_guard lock(mutex_);
  return table_.size();
}

void Mappings::check_invariants() const {
  std::lock_guard lock(mutex_);
  uintptr_t end = 0;
  for (const auto& [address, entry] : table_) {
    SPW_CHECK(address >= end && entry.bytes > 0 && entry.bytes % kMmuPageBytes == 0);
    end = address + entry.bytes;
  }
  for (auto [unit, left] : mapped_left_) SPW_CHECK(left > 0 && unit % regions_.block_bytes() == 0);
}

}  // namespace spw::heap
