// Ranges of managed addresses: best fit, lowest address among equals,
// with coalescing; and ones that nobody ever had, for good.
//
// New ranges are for files. What was given back may be cached still: of a block that somebody has pinned while it is
// discarded the cache makes the frame zero and keeps it (SharedCache::discard), and who holds it may store to it
// without telling. For whoever gets the addresses next as memory that is what they should hold, zeros; a file's block
// it would hide, and then be written over it. So an address is a file's or memory's for the life of the process, and
// never one file's and then another's.
//
// Invariants
//   the free ranges are disjoint and no two touch
//   by_size_ holds (bytes, address) exactly for the entries of by_address_
//   free bytes + taken bytes = bytes of the space
//   used_end_ <= top_; [begin, used_end_) is what take() and take_at() ever reached, [used_end_, top_) nobody ever had,
//     and all from top_ on is taken for good, what lies between two new ranges included
// Threads: any (one mutex). Lifetime: outlives nothing it hands out. Limits: sizes and addresses are multiples of the
// unit; alignments are powers of two. New ranges end where take() has been: freed memory does not become new again.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "heap/node_pool.h"

namespace spw::heap {

class RangeAllocator {
 public:
  // Manages [begin, begin + bytes).
  RangeAllocator(region::NativeMemory& memory, uintptr_t begin, uint64_t bytes, uint64_t unit_bytes);

  // 0 when no free range is large enough.
  uintptr_t take(uint64_t bytes, uint64_t alignment_bytes);
  // Exactly [address, address + bytes), if all of it is free.
  bool take_at(uintptr_t address, uint64_t bytes);
  // Addresses that nobody ever had, from the end of the space
  // downwards; never to be given back. 0 when no more are left.
  uintptr_t take_new(uint64_t bytes, uint64_t alignment_bytes);
  void give(uintptr_t address, uint64_t bytes);

  uint64_t free_bytes() const;
  size_t free_ranges() const;
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }
  void check_invariants() const;

 private:
  using BySize =
      std::set<std::pair<uint64_t, uintptr_t>, std::less<>, PoolAllocator<std::pair<uint64_t, uintptr_t>>>;
  using ByAddress =
      std::map<uintptr_t, uint64_t, std::less<>, PoolAllocator<std::pair<const uintptr_t, uint64_t>>>;

  void insert(uintptr_t address, uint64_t bytes);
  void erase(ByAddress::iterator range);
  uintptr_t carve(ByAddress::iterator range, uintptr_t address, uint64_t bytes);
  uintptr_t use(ByAddress::iterator range, uintptr_t address, uint64_t bytes);

  const uintptr_t begin_;
  const uint64_t bytes_;
  const uint64_t unit_bytes_;
  mutable std::mutex mutex_;
  NodePool pool_;
  ByAddress by_address_;
  BySize by_size_;
  uint64_t free_bytes_ = 0;
  uintptr_t used_end_;
  uintptr_t top_;
};

}  // namespace spw::heap
