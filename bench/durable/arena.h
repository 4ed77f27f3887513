// Small objects of a persistent region, packed as the heap of the paper's programs packs them.
//
// How many lines an operation stores to is a matter of what lies beside what. That heap (Atlas's) hands out addresses
// that rise, multiples of 16, and keeps 16 bytes in front of each object; freeing an object is a store to them. So
// objects of 16 bytes are 32 bytes apart, two to a line, and this is what the ratios of Table III show: 2.5 lines for
// an enqueue are the queue's line, the new node's, and every second time another one for the node before it. Only the
// offset at which a heap's first object lies is a guess; here it is 32 in a line, which is where list elements take the
// three lines each that the paper found.
//
// An object in front of which stands 0 is in use, so that allocating takes no store: the memory is that of a new
// region, zero. What was freed is not used again. After a crash the rest of the last piece would be lost.
// Threads: one at a time.
#pragma once

#include "durable/workload.h"

namespace spw::bench {

class Arena {
 public:
  explicit Arena(Run& run) : run_(run) {}

  template <class T>
  T* allocate() {
    static_assert(alignof(T) <= kGrain);
    return static_cast<T*>(allocate(sizeof(T)));
  }
  void* allocate(size_t bytes) {
    const size_t needed = sizeof(Mark) + (bytes + kGrain - 1) / kGrain * kGrain;
    if (static_cast<size_t>(end_ - next_) < needed) {
      next_ = static_cast<std::byte*>(run_.allocate(kPieceBytes)) + kFirstOffset;
      end_ = next_ + kPieceBytes - kFirstOffset;
    }
    std::byte* object = next_ + sizeof(Mark);
    next_ += needed;
    return object;
  }
  static void free(void* object) { store(static_cast<Mark*>(object)[-1].is_free, uint64_t{1}); }

 private:
  static constexpr size_t kGrain = 16;
  static constexpr size_t kPieceBytes = size_t{1} << 20;
  static constexpr size_t kFirstOffset = 32;
  struct alignas(kGrain) Mark {
    uint64_t is_free;
  };

  Run& run_;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
};

}  // namespace spw::bench
