// The managed heap: objects and mappings in managed space, with everything known about them in native memory, so that
// no operation reads or writes a managed block.
//
// An object of up to slabs().object_bytes_max() bytes is a slot of a span (slabs.h). A larger one is a range of its
// own, aligned to the block, at least PageMap's unit long. Freed ranges are discarded at once (region/) and coalesce.
// Behind it a block is left out: large objects of 2^n bytes would otherwise lie 2^n apart, and a loop over several of
// them would have them all in the same sets of the processor's caches (a stencil of two grids: 1.5 times as slow).
// Whoever runs over an object's end faults there.
//
// Invariants: a range that is taken in the range allocator is a large object with
// the gap behind it, a span or a mapping's reservation, and is live in the region
// map but for the gap; nothing else is, but addresses that files have had.
// Threads: any, for every call but check_invariants(). An object is freed or resized by one thread at a time.
// Lifetime: outlived by the RegionMap and its cache. Limits: sizes up to the space; alignments up to kAlignmentMax.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "heap/mappings.h"
#include "heap/page_map.h"
#include "heap/range_allocator.h"
#include "heap/slabs.h"
#include "region/region_map.h"

namespace spw::heap {

inline constexpr uint64_t kAlignmentMax = kGiB;
inline constexpr uint64_t kAlignmentMin = 16;

class Heap {
 public:
  struct Allocation {
    void* address = nullptr;  // nullptr: no room
    bool zeroed = false;      // all of it reads as zeros, without having been written
  };

  // Hands out [SPW_MANAGED_BASE + region::kFirstBytes, SPW_MANAGED_BASE + space_bytes). The `call_bytes` behind that
  // are for files that are reached by calls alone, where the engine has another place for such blocks.
  static Result<std::unique_ptr<Heap>> create(region::RegionMap& regions, uint64_t space_bytes,
                                              uint64_t call_bytes = 0);
  ~Heap();

  // `alignment`: a power of two. `bytes` 0 is as 1.
  Allocation allocate(uint64_t bytes, uint64_t alignment = kAlignmentMin);
  // `object`: what allocate() returned, not yet freed; anything else is a check failure.
  void free(void* object);
  uint64_t usable_bytes(const void* object) const;
  // False where a mapping has the address: an allocator that the program brought along has its objects there.
  bool is_object(const void* object) const;
  // True when the object has at least `bytes` usable bytes now and gave back what it need not keep, without moving.
  // New bytes of a large object that grew are zeros.
  bool resize_in_place(void* object, uint64_t bytes);

  Mappings& mappings() { return mappings_; }
  // nullptr: there is no such space.
  Mappings* call_mappings() { return for_calls_ ? &for_calls_->mappings : nullptr; }
  region::RegionMap& regions() { return regions_; }

  uint64_t metadata_bytes() const { return memory_.counted_bytes(); }
  // The calling thread's runs of small slots go back, as at its end.
  void end_thread() { slabs_.end_thread(); }
  // pthread_atfork: no other thread is inside the heap or the region map between the two.
  void lock_for_fork();
  void unlock_after_fork();
  // In a child that goes on, in place of it.
  void in_child();
  void check_invariants();

 private:
  void unlock_own_after_fork();
  Heap(region::RegionMap& regions, uint64_t space_bytes);
  Status start(uint64_t space_bytes);
  uint64_t large_bytes(uint64_t bytes) const;
  uint64_t gap_bytes() const { return regions_.block_bytes(); }
  PageMap::Large large_at(const void* object) const;

  region::RegionMap& regions_;
  region::NativeMemory memory_;
  PageMap pages_;
  RangeAllocator ranges_;
  Mappings mappings_;
  struct ForCalls {
    ForCalls(region::NativeMemory& memory, region::RegionMap& regions, uintptr_t begin, uint64_t bytes)
        : ranges(memory, begin, bytes, region::kChunkBytes), mappings(memory, regions, ranges) {}
    RangeAllocator ranges;
    Mappings mappings;
  };
  std::unique_ptr<ForCalls> for_calls_;
  Slabs slabs_;
};

}  // namespace spw::heap
