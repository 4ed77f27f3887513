// Memory for the metadata of regions and of the heap: outside managed space, never from malloc, and counted.
//
// Invariant: counted_bytes() = bytes of all chunks mapped. Pieces are zeroed and never given back before the end.
// Threads: any. Lifetime: pieces live as long as this. Limits: none but the kernel's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/atomic.h"
#include "base/check.h"
#include "platform/memory.h"

namespace spw::region {

class NativeMemory {
 public:
  NativeMemory() = default;
  ~NativeMemory();
  NativeMemory(const NativeMemory&) = delete;
  NativeMemory& operator=(const NativeMemory&) = delete;

  // `bytes` zeroed bytes at a 64-byte aligned address (page aligned when bytes is a multiple of a page), or nullptr.
  void* take(size_t bytes);
  uint64_t counted_bytes() const { return counted_bytes_.load_relaxed(); }
  // For fork: no other thread is inside take() between the two.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  struct ChunkHeader;
  bool add_chunk(size_t bytes);

  std::mutex mutex_;
  ChunkHeader* chunks_ = nullptr;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  Atomic<uint64_t> counted_bytes_{0};
};

// A zeroed array in address space of its own; memory is used only where it was touched. For tables indexed by address
// whose touched part is small beside what they describe.
template <class T>
class SparseArray {
 public:
  Status allocate(uint64_t count) {
    auto mapping = platform::map_anonymous(round_to_pages(count * sizeof(T)));
    if (!mapping) return mapping.status();
    memory_ = std::move(*mapping);
    count_ = count;
    return Status::ok();
  }
  uint64_t count() const { return count_; }
  T& operator[](uint64_t i) {
    SPW_DCHECK(i < count_);
    return reinterpret_cast<T*>(memory_.data())[i];
  }
  const T& operator[](uint64_t i) const {
    SPW_DCHECK(i < count_);
    return reinterpret_cast<const T*>(memory_.data())[i];
  }

 private:
  static uint64_t round_to_pages(uint64_t bytes) { return (bytes + 4095) & ~uint64_t{4095}; }

  platform::Mapping memory_;
  uint64_t count_ = 0;
};

}  // namespace spw::region
