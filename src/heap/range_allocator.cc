#include "heap/range_allocator.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace spw::heap {

namespace {
// Ranges that are long enough but may lie badly for an alignment: how many are tried before one is taken that surely
// does.
constexpr int kFitTriesMax = 16;
}  // namespace

RangeAllocator::RangeAllocator(region::NativeMemory& memory, uintptr_t begin, uint64_t bytes,
                               uint64_t unit_bytes)
    : begin_(begin),
      bytes_(bytes),
      unit_bytes_(unit_bytes),
      pool_(memory),
      by_address_(PoolAllocator<std::pair<const uintptr_t, uint64_t>>(pool_)),
      by_size_(PoolAllocator<std::pair<uint64_t, uintptr_t>>(pool_)),
      used_end_(begin),
      top_(begin + bytes) {
  insert(begin, bytes);
}

void RangeAllocator::insert(uintptr_t address, uint64_t bytes) {
  by_address_.emplace(address, bytes);
  by_size_.emplace(bytes, address);
  free_bytes_ += bytes;
}

void RangeAllocator::erase(ByAddress::iterator range) {
  free_bytes_ -= range->second;
  by_size_.erase({range->second, range->first});
  by_address_.erase(range);
}

uintptr_t RangeAllocator::carve(ByAddress::iterator range, uintptr_t address, uint64_t bytes) {
  auto [begin, size] = *range;
  erase(range);
  if (address > begin) insert(begin, address - begin);
  if (begin + size > address + bytes) insert(address + bytes, begin + size - (address + bytes));
  return address;
}

uintptr_t RangeAllocator::use(ByAddress::iterator range, uintptr_t address, uint64_t bytes) {
  used_end_ = std::max(used_end_, address + bytes);
  return carve(range, address, bytes);
}

uintptr_t RangeAllocator::take(uint64_t bytes, uint64_t alignment_bytes) {
  SPW_CHECK(bytes > 0 && bytes % unit_bytes_ == 0 && is_power_of_two(alignment_bytes));
  if (bytes > bytes_) return 0;
  std::lock_guard lock(mutex_);
  int tries = 0;
  for (auto it = by_size_.lower_bound({bytes, 0}); it != by_size_.end() && tries < kFitTriesMax;
       ++it, ++tries) {
    uintptr_t address = round_up(it->second, alignment_bytes);
    if (address + bytes <= it->second + it->first) return use(by_address_.find(it->second), address, bytes);
  }
  if (alignment_bytes > bytes_) return 0;
  auto sure = by_size_.lower_bound({bytes + alignment_bytes, 0});
  if (sure == by_size_.end()) return 0;
  return use(by_address_.find(sure->second), round_up(sure->second, alignment_bytes), bytes);
}

bool RangeAllocator::take_at(uintptr_t address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto range = by_address_.upper_bound(address);
  if (range == by_address_.begin()) return false;
  --range;
  if (address + bytes > range->first + range->second) return false;
  use(range, address, bytes);
  return true;
}

uintptr_t RangeAllocator::take_new(uint64_t bytes, uint64_t alignment_bytes) {
  SPW_CHECK(bytes > 0 && bytes % unit_bytes_ == 0 && is_power_of_two(alignment_bytes));
  std::lock_guard lock(mutex_);
  if (bytes > top_ - used_end_) return 0;
  const uintptr_t address = round_down(top_ - bytes, alignment_bytes);
  if (address < used_end_) return 0;
  carve(std::prev(by_address_.upper_bound(address)), address, top_ - address);
  return top_ = address;
}

void RangeAllocator::give(uintptr_t address, uint64_t bytes) {
  SPW_CHECK(bytes > 0 && bytes % unit_bytes_ == 0 && address >= begin_);
  std::lock_guard lock(mutex_);
  SPW_CHECK(address + bytes <= used_end_);
  auto next = by_address_.lower_bound(address);
  if (next != by_address_.end()) {
    SPW_CHECK(address + bytes <= next->first);
    if (address + bytes == next->first) {
      bytes += next->second;
      erase(next++);
    }
  }
  if (next != by_address_.begin()) {
    auto previous = std::prev(next);
    SPW_CHECK(previous->first + previous->second <= address);
    if (previous->first + previous->second == address) {
      address = previous->first;
      bytes += previous->second;
      erase(previous);
    }
  }
  insert(address, bytes);
}

uint64_t RangeAllocator::free_bytes() const {
  std::lock_guard lock(mutex_);
  return free_bytes_;
}

size_t RangeAllocator::free_ranges() const {
  std::lock_guard lock(mutex_);
  return by_address_.size();
}

void RangeAllocator::check_invariants() const {
  std::lock_guard lock(mutex_);
  SPW_CHECK(by_address_.size() == by_size_.size());
  uint64_t total = 0;
  uintptr_t end = 0;
  for (auto [address, bytes] : by_address_) {
    SPW_CHECK(bytes > 0 && address > end);
    SPW_CHECK(address >= begin_ && address + bytes <= top_);
    SPW_CHECK(by_size_.count({bytes, address}) == 1);
    end = address + bytes;
    total += bytes;
  }
  SPW_CHECK(total == free_bytes_);
  SPW_CHECK(used_end_ <= top_ && top_ <= begin_ + bytes_);
  if (used_end_ < top_) SPW_CHECK(end == top_ && by_address_.rbegin()->first <= used_end_);
}

}  // namespace spw::heap
