#include "heap/heap.h"

#include <algorithm>

#include "abi/abi.h"
#include "base/check.h"
#include "telemetry/areas.h"
#include "telemetry/counters.h"

namespace spw::heap {

Heap::Heap(region::RegionMap& regions, uint64_t space_bytes)
    : regions_(regions),
      ranges_(memory_, SPW_MANAGED_BASE + region::kFirstBytes, space_bytes - region::kFirstBytes,
              regions.block_bytes()),
      mappings_(memory_, regions, ranges_),
      slabs_(memory_, regions, ranges_, pages_) {}

Heap::~Heap() = default;

Result<std::unique_ptr<Heap>> Heap::create(region::RegionMap& regions, uint64_t space_bytes,
                                           uint64_t call_bytes) {
  SPW_CHECK(space_bytes > region::kFirstBytes && space_bytes + call_bytes <= SPW_MANAGED_BYTES);
  SPW_CHECK(space_bytes % region::kChunkBytes == 0 && call_bytes % region::kChunkBytes == 0);
  std::unique_ptr<Heap> heap(new Heap(regions, space_bytes));
  if (call_bytes > 0)
    heap->for_calls_ =
        std::make_unique<ForCalls>(heap->memory_, regions, SPW_MANAGED_BASE + space_bytes, call_bytes);
  if (Status s = heap->start(space_bytes); !s) return s;
  return heap;
}

Status Heap::start(uint64_t space_bytes) {
  if (Status s = pages_.allocate(memory_, regions_.block_shift(), space_bytes); !s) return s;
  return slabs_.start();
}

uint64_t Heap::large_bytes(uint64_t bytes) const {
  return round_up(std::max(bytes, pages_.unit_bytes()), regions_.block_bytes());
}

Heap::Allocation Heap::allocate(uint64_t bytes, uint64_t alignment) {
  SPW_CHECK(is_power_of_two(alignment));
  if (bytes > SPW_MANAGED_BYTES || alignment > kAlignmentMax) return {};
  bytes = std::max<uint64_t>(bytes, 1);
  Allocation result;
  if (bytes <= slabs_.object_bytes_max() && alignment <= slabs_.object_bytes_max()) {
    SmallObject small = slabs_.allocate(bytes, alignment);
    result = {small.address, small.zeroed};
  } else {
    uint64_t reserved = large_bytes(bytes);
    uintptr_t address = ranges_.take(reserved + gap_bytes(), std::max(alignment, regions_.block_bytes()));
    if (address == 0) return {};
    if (!pages_.set_large(address, reserved)) {
      ranges_.give(address, reserved + gap_bytes());
      return {};
    }
    regions_.add_anonymous(address, reserved);
    telemetry::note_area(address - SPW_MANAGED_BASE, reserved);
    result = {reinterpret_cast<void*>(address), true};
  }
  if (result.address == nullptr) return {};
  telemetry::count(telemetry::Counter::managed_allocations);
  telemetry::count(telemetry::Counter::managed_bytes_allocated, bytes);
  return result;
}

PageMap::Large Heap::large_at(const void* object) const {
  PageMap::Large large = pages_.find_large(reinterpret_cast<uintptr_t>(object));
  SPW_CHECK(large.bytes != 0);  // never allocated here, or freed already
  return large;
}

bool Heap::is_object(const void* object) const {
  const auto address = reinterpret_cast<uintptr_t>(object);
  if (pages_.find_span(address) != nullptr || pages_.find_large(address).bytes != 0) return true;
  return mappings_.find(address, address + 1).bytes == 0;  // a bug of the program's, for free() to find
}

void Heap::free(void* object) {
  auto address = reinterpret_cast<uintptr_t>(object);
  if (Span* span = pages_.find_span(address)) return slabs_.free(*span, address);
  PageMap::Large large = large_at(object);
  pages_.clear(address);
  regions_.remove(large.address, large.bytes);
  ranges_.give(large.address, large.bytes + gap_bytes());
}

uint64_t Heap::usable_bytes(const void* object) const {
  if (const Span* span = pages_.find_span(reinterpret_cast<uintptr_t>(object)))
    return slabs_.usable_bytes(*span);
  return large_at(object).bytes;
}

bool Heap::resize_in_place(void* object, uint64_t bytes) {
  auto address = reinterpret_cast<uintptr_t>(object);
  if (const Span* span = pages_.find_span(address)) {
    // A slot that would be less than half used is better left for a smaller one.
    uint64_t usable = slabs_.usable_bytes(*span);
    return bytes <= usable && (bytes > usable / 2 || usable <= 64);
  }
  PageMap::Large large = large_at(object);
  if (bytes > SPW_MANAGED_BYTES || bytes <= slabs_.object_bytes_max()) return false;
  uint64_t wanted = large_bytes(bytes);
  if (wanted > large.bytes) {
    if (!ranges_.take_at(address + large.bytes + gap_bytes(), wanted - large.bytes)) return false;
    regions_.add_anonymous(address + large.bytes, wanted - large.bytes);
  }
  pages_.set_large(address, wanted);
  if (wanted < large.bytes) {
    regions_.remove(address + wanted, large.bytes - wanted);
    ranges_.give(address + wanted + gap_bytes(), large.bytes - wanted);
  }
  return true;
}

void Heap::lock_for_fork() {
  slabs_.lock_for_fork();
  mappings_.lock_for_fork();
  ranges_.lock_for_fork();
  if (for_calls_) for_calls_->mappings.lock_for_fork();
  if (for_calls_) for_calls_->ranges.lock_for_fork();
  regions_.lock_for_fork();
  memory_.lock_for_fork();
}

void Heap::unlock_after_fork() {
  memory_.unlock_after_fork();
  regions_.unlock_after_fork();
  unlock_own_after_fork();
}

void Heap::in_child() {
  memory_.unlock_after_fork();
  regions_.in_child();
  unlock_own_after_fork();
}

void Heap::unlock_own_after_fork() {
  if (for_calls_) for_calls_->ranges.unlock_after_fork();
  if (for_calls_) for_calls_->mappings.unlock_after_fork();
  ranges_.unlock_after_fork();
  mappings_.unlock_after_fork();
  slabs_.unlock_after_fork();
}

void Heap::check_invariants() {
  ranges_.check_invariants();
  mappings_.check_invariants();
  if (for_calls_) for_calls_->ranges.check_invariants();
  if (for_calls_) for_calls_->mappings.check_invariants();
  slabs_.check_invariants();
  regions_.check_invariants();
}

}  // namespace spw::heap
