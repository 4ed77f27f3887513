// What begins where in managed space: an entry of eight bytes a unit, found by address without a lock.
//
//     entry = 0                                         nothing the heap handed out begins in this unit
//             1 << 62 | first block << 40 | blocks      a large object begins in the unit's block `first block`
//             2 << 62 | address of a Span               the unit belongs to a span of small objects
//
// A unit is max(16 KiB, block), and every large object takes at least a unit, so at most one begins in each.
// Threads: any. An entry changes only in the hands of whoever allocates or frees what begins there.
// Limits: leaves are never given back (8 bytes for 16 KiB of addresses ever used).
#pragma once

#include <cstdint>

#include "abi/abi.h"
#include "base/atomic.h"
#include "base/units.h"
#include "region/native_memory.h"

namespace spw::heap {

struct Span;

class PageMap {
 public:
  static constexpr uint64_t kUnitBytesMin = 16 * kKiB;

  struct Large {
    uintptr_t address;
    uint64_t bytes;
  };

  Status allocate(region::NativeMemory& memory, unsigned block_shift, uint64_t space_bytes) {
    memory_ = &memory;
    block_shift_ = block_shift;
    while (unit_bytes() < kUnitBytesMin || unit_bytes() < (uint64_t{1} << block_shift)) ++unit_shift_;
    return root_.allocate((space_bytes >> unit_shift_) / kLeafEntries + 1);
  }
  uint64_t unit_bytes() const { return uint64_t{1} << unit_shift_; }

  // False: no memory for the leaf.
  bool set_large(uintptr_t address, uint64_t bytes) {
    uint64_t block = (address & (unit_bytes() - 1)) >> block_shift_;
    return set(address, kLarge | block << kBlockShift | bytes >> block_shift_);
  }
  bool set_span(uintptr_t address, Span* span) {
    return set(address, kSpan | reinterpret_cast<uintptr_t>(span));
  }
  void clear(uintptr_t address) {
    if (Atomic<uint64_t>* e = entry(address)) e->store_release(0);
  }
  // The large object that begins at `address`, or one of 0 bytes.
  Large find_large(uintptr_t address) const {
    const Atomic<uint64_t>* e = entry(address);
    uint64_t word = e == nullptr ? 0 : e->load_acquire();
    if (word >> 62 != kLarge >> 62) return {0, 0};
    uint64_t unit = address & ~(unit_bytes() - 1);
    uint64_t begin = unit + ((word >> kBlockShift & 0xff) << block_shift_);
    if (begin != address) return {0, 0};
    return {begin, (word & ((uint64_t{1} << kBlockShift) - 1)) << block_shift_};
  }
  // The span that `address` lies in, or nullptr.
  Span* find_span(uintptr_t address) const {
    const Atomic<uint64_t>* e = entry(address);
    uint64_t word = e == nullptr ? 0 : e->load_acquire();
    return word >> 62 == kSpan >> 62 ? reinterpret_cast<Span*>(word & ~kSpan) : nullptr;
  }

 private:
  static constexpr uint64_t kLarge = uint64_t{1} << 62;
  static constexpr uint64_t kSpan = uint64_t{2} << 62;
  static constexpr unsigned kBlockShift = 40;
  static constexpr uint64_t kLeafEntries = 512;  // a page
  struct Leaf {
    Atomic<uint64_t> entries[kLeafEntries];
  };

  uint64_t unit_of(uintptr_t address) const { return (address - SPW_MANAGED_BASE) >> unit_shift_; }
  Atomic<uint64_t>* entry(uintptr_t address) const {
    uint64_t unit = unit_of(address);
    if (unit / kLeafEntries >= root_.count()) return nullptr;
    Leaf* leaf = root_[unit / kLeafEntries].load_acquire();
    return leaf == nullptr ? nullptr : &leaf->entries[unit % kLeafEntries];
  }
  bool set(uintptr_t address, uint64_t word) {
    Atomic<Leaf*>& slot = root_[unit_of(address) / kLeafEntries];
    Leaf* leaf = slot.load_acquire();
    if (leaf == nullptr) {
      auto* fresh = static_cast<Leaf*>(memory_->take(sizeof(Leaf)));
      if (fresh == nullptr) return false;
      // On failure `leaf` is another thread's, and a page is lost: rare.
      if (slot.cas_strong_acq_rel(leaf, fresh)) leaf = fresh;
    }
    leaf->entries[unit_of(address) % kLeafEntries].store_release(word);
    return true;
  }

  region::NativeMemory* memory_ = nullptr;
  unsigned block_shift_ = 0;
  unsigned unit_shift_ = 0;
  region::SparseArray<Atomic<Leaf*>> root_;
};

}  // namespace spw::heap
