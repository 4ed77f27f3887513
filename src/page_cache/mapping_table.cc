#include "page_cache/mapping_table.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "platform/memory.h"

namespace spw::page_cache {

namespace {
constexpr uint64_t kPagesThatTell = 64;

uint64_t units_of(const Mapping& mapping) {
  return (mapping.end - mapping.begin + MappingTable::kUnitBytes - 1) / MappingTable::kUnitBytes;
}
}  // namespace

Mapping part_of(const Mapping& mapping, uintptr_t begin, uintptr_t end) {
  Mapping part = mapping;
  part.begin = std::max(mapping.begin, begin);
  part.end = std::min(mapping.end, end);
  part.offset_bytes = mapping.offset_bytes + (part.begin - mapping.begin);
  return part;
}

MappingTable::Entries::iterator MappingTable::first_behind(uintptr_t address) {
  auto at = entries_.upper_bound(address);
  if (at != entries_.begin() && std::prev(at)->second.mapping.end > address) --at;
  return at;
}

MappingTable::Entries::const_iterator MappingTable::first_behind(uintptr_t address) const {
  return const_cast<MappingTable*>(this)->first_behind(address);
}

void MappingTable::add(const Mapping& mapping) {
  std::lock_guard lock(mutex_);
  Entry entry;
  entry.mapping = mapping;
  entry.present.resize(units_of(mapping));
  entries_.insert_or_assign(mapping.begin, std::move(entry));
  count_.store_relaxed(entries_.size());
}

// What stands outside of [begin, end) stays.
void MappingTable::cut(Entries::iterator at, uintptr_t begin, uintptr_t end, std::vector<Mapping>* removed) {
  Entry whole = std::move(at->second);
  entries_.erase(at);
  whole.is_closing = false;
  whole.present.clear();
  whole.came = whole.units_got = 0;
  removed->push_back(part_of(whole.mapping, begin, end));
  for (const auto& [from, to] : {std::pair{whole.mapping.begin, begin}, std::pair{end, whole.mapping.end}}) {
    if (from >= to) continue;
    Entry rest = whole;
    rest.mapping = part_of(whole.mapping, from, to);
    entries_.emplace(from, std::move(rest));
  }
}

std::vector<Mapping> MappingTable::remove(uintptr_t begin, uintptr_t end) {
  std::vector<Mapping> removed;
  std::unique_lock lock(mutex_);
  for (auto at = first_behind(begin); at != entries_.end() && at->second.mapping.begin < end;
       at = first_behind(begin)) {
    at->second.is_closing = true;
    if (at->second.taken > 0) {
      given_back_.wait(lock);
      continue;  // others may have changed the table
    }
    cut(at, begin, end, &removed);
    count_.store_relaxed(entries_.size());
  }
  return removed;
}

bool MappingTable::overlaps(uintptr_t begin, uintptr_t end) const {
  if (is_empty()) return false;
  std::lock_guard lock(mutex_);
  auto at = first_behind(begin);
  return at != entries_.end() && at->second.mapping.begin < end;
}

std::optional<Mapping> MappingTable::find(uintptr_t address) const {
  if (is_empty()) return std::nullopt;
  std::lock_guard lock(mutex_);
  auto at = first_behind(address);
  if (at == entries_.end() || at->second.mapping.begin > address) return std::nullopt;
  return at->second.mapping;
}

std::optional<Mapping> MappingTable::take(uintptr_t at, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto found = first_behind(at);
  while (found != entries_.end() && found->second.is_closing) ++found;
  if (found == entries_.end()) return std::nullopt;
  Entry& entry = found->second;
  ++entry.taken;
  const uintptr_t begin = std::max(at, entry.mapping.begin);
  return part_of(entry.mapping, begin, begin + bytes);
}

void MappingTable::give_back(Entry& entry) {
  if (--entry.taken == 0 && entry.is_closing) given_back_.notify_all();
}

// A part that is taken is there as it was.
void MappingTable::give_back(const Mapping& part) {
  std::lock_guard lock(mutex_);
  give_back(first_behind(part.begin)->second);
}

void MappingTable::give_back(const Mapping& part, std::span<const uint16_t> present) {
  std::lock_guard lock(mutex_);
  Entry& entry = first_behind(part.begin)->second;
  const uint64_t units = units_of(entry.mapping);
  const bool is_known = entry.present.size() == units;
  entry.present.resize(units);
  const uint64_t first = (part.begin - entry.mapping.begin) / kUnitBytes;
  for (uint64_t i = 0; i < present.size() && first + i < units; ++i) {
    const uint16_t before = std::exchange(entry.present[first + i], present[i]);
    if (!is_known || present[i] <= before) continue;
    entry.came += present[i] - before;
    ++entry.units_got;
  }
  if (part.end == entry.mapping.end) adapt_advice(entry);
  give_back(entry);
}

// At the end of a look.
void MappingTable::adapt_advice(Entry& entry) {
  const uint64_t came = std::exchange(entry.came, 0), units_got = std::exchange(entry.units_got, 0);
  if (entry.is_advised || came < kPagesThatTell) return;
  const bool wanted = entry.reads_ahead ? came >= kCameForSinglePages * units_got
                                        : came >= kCameForReadahead * units_got &&
                                              units_got * kUnitsShare <= entry.present.size();
  if (wanted == entry.reads_ahead) return;
  entry.reads_ahead = wanted;
  const Mapping& mapping = entry.mapping;
  (void)platform::advise(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin,
                         wanted ? platform::Advice::kNormal : platform::Advice::kRandom);
}

bool MappingTable::reads_ahead(uintptr_t address) const {
  std::lock_guard lock(mutex_);
  auto at = first_behind(address);
  return at != entries_.end() && at->second.mapping.begin <= address && at->second.reads_ahead;
}

void MappingTable::note_advice(uintptr_t begin, uintptr_t end) {
  std::lock_guard lock(mutex_);
  for (auto at = first_behind(begin); at != entries_.end() && at->second.mapping.begin < end; ++at)
    at->second.is_advised = true;
}

}  // namespace spw::page_cache
