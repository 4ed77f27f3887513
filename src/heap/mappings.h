// What mmap handed out in managed space: who unmaps, grows, advises or moves it finds the mapping by any address in it.
//
// A mapping is [address, address + bytes) with bytes a multiple of the MMU page, on a reservation that is a multiple of
// the block (anonymous) or of a chunk (file). Unmapping a part trims or splits it. Space is given back in reservation
// units: a unit of which pages were unmapped one after the other goes when the last page of it does.
//
// Addresses of file mappings are new ones, and nobody gets them again (range_allocator.h says why): a file is not
// mapped, nor made longer in place, where other memory or another file has been.
//
// Invariants: mappings are disjoint; every unit of the reservations is taken in the range allocator and belongs to
// one mapping's original reservation; mapped_left_ has an entry exactly for the units that are mapped in part.
// Threads: any (one mutex). Limits: sizes up to that of managed
// space; larger ones are refused as those that do not fit.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "heap/node_pool.h"
#include "heap/range_allocator.h"
#include "region/region_map.h"

namespace spw::heap {

struct Mapping {
  uintptr_t address = 0;
  uint64_t bytes = 0;
  region::Kind kind = region::Kind::kNone;  // kNone: there is no mapping
  uint64_t end() const { return address + bytes; }
};

class Mappings {
 public:
  Mappings(region::NativeMemory& memory, region::RegionMap& regions, RangeAllocator& ranges);

  // `alignment`: a power of two; less than the unit of the reservation counts as that.
  // 0: no room.
  uintptr_t map_anonymous(uint64_t bytes, uint64_t alignment = 0);
  // ENOMEM where there are no new addresses, ENFILE.
  Result<uintptr_t> map_file(uint64_t bytes, region::FileMapping file, uint64_t alignment = 0);
  // Anonymous memory at [address, address + bytes), where other such mappings may be, which keep what they hold; one
  // mapping with those that it touches. False, and nothing changes: something else is there.
  bool map_at(uintptr_t address, uint64_t bytes);
  // The mapping that holds `address`, or the first one behind it that begins before `end`.
  Mapping find(uintptr_t address, uintptr_t end) const;
  // Drops the pages of [address, address + bytes) wherever they are
  // mapped. Shared files are written first by the caller.
  void unmap(uintptr_t address, uint64_t bytes);
  // Makes the mapping that ends at `address + old_bytes` longer without moving it; false when what follows is taken.
  bool extend(uintptr_t address, uint64_t old_bytes, uint64_t new_bytes);

  size_t count() const;
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }
  void check_invariants() const;

 private:
  struct Entry {
    uint64_t bytes;
    region::Kind kind;
  };
  using Table = std::map<uintptr_t, Entry, std::less<>, PoolAllocator<std::pair<const uintptr_t, Entry>>>;
  using Pages =
      std::map<uintptr_t, uint64_t, std::less<>, PoolAllocator<std::pair<const uintptr_t, uint64_t>>>;

  uint64_t unit_bytes(region::Kind kind) const;
  struct Gap {
    uintptr_t begin, end;
  };
  bool take_gaps(std::span<const Gap> gaps, std::vector<Gap>* taken);
  void join(uintptr_t begin, uintptr_t end);
  void unmap_within(uintptr_t begin, uintptr_t end, region::Kind kind);
  void drop_pages(uintptr_t unit, uint64_t bytes, region::Kind kind);
  void give_back(uintptr_t address, uint64_t bytes, region::Kind kind);

  region::RegionMap& regions_;
  RangeAllocator& ranges_;
  mutable std::mutex mutex_;
  NodePool pool_;
  Table table_;
  Pages mapped_left_;  // unit -> bytes of it that are still mapped, for units partly mapped
};

}  // namespace spw::heap
