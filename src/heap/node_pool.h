// Native memory for the nodes of the heap's own containers, recycled by size, and an allocator that gives it to them.
//
// Threads: the caller serialises (every pool belongs to one locked structure). Lifetime: outlives its containers.
// Limits: pieces of up to kPieceBytesMax bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/need.h"
#include "region/native_memory.h"

namespace spw::heap {

class NodePool {
 public:
  static constexpr size_t kPieceBytesMax = 256;

  explicit NodePool(region::NativeMemory& memory) : memory_(memory) {}

  void* take(size_t bytes) {
    Free*& list = list_of(bytes);
    if (list == nullptr) return memory_.take(rounded(bytes));
    Free* piece = list;
    list = piece->next;
    return piece;
  }
  void give(void* piece, size_t bytes) {
    Free*& list = list_of(bytes);
    list = new (piece) Free{list};
  }

 private:
  struct Free {
    Free* next;
  };
  static constexpr size_t kStepBytes = 64;
  static size_t rounded(size_t bytes) { return (bytes + kStepBytes - 1) / kStepBytes * kStepBytes; }
  Free*& list_of(size_t bytes) {
    SPW_CHECK(bytes > 0 && bytes <= kPieceBytesMax);
    return free_[(bytes - 1) / kStepBytes];
  }

  region::NativeMemory& memory_;
  Free* free_[kPieceBytesMax / kStepBytes] = {};
};

// For std::map and std::set. Out of native memory ends the process (base/need.h): containers have no way to say so
// without exceptions.
template <class T>
struct PoolAllocator {
  using value_type = T;
  NodePool* pool;

  explicit PoolAllocator(NodePool& p) : pool(&p) {}
  template <class U>
  PoolAllocator(const PoolAllocator<U>& other) : pool(other.pool) {}
  T* allocate(size_t n) {
    void* piece = pool->take(n * sizeof(T));
    need_memory(piece, "get memory for the tables of the heap");
    return static_cast<T*>(piece);
  }
  void deallocate(T* p, size_t n) { pool->give(p, n * sizeof(T)); }
  bool operator==(const PoolAllocator& other) const { return pool == other.pool; }
};

}  // namespace spw::heap
