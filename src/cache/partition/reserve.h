// A bounded first-in-first-out queue of frame indices, for the owner alone.
#pragma once

#include <cstdint>
#include <memory>

#include "base/check.h"

namespace spw::cache {

class Reserve {
 public:
  explicit Reserve(uint32_t capacity) : capacity_(capacity), ring_(std::make_unique<uint32_t[]>(capacity)) {}

  uint32_t size() const { return size_; }
  bool full() const { return size_ == capacity_; }
  void push(uint32_t frame) {
    SPW_CHECK(!full());
    ring_[(head_ + size_++) % capacity_] = frame;
  }
  // i < size(); 0: what pop() gives.
  uint32_t at(uint32_t i) const { return ring_[(head_ + i) % capacity_]; }
  uint32_t pop() {
    SPW_CHECK(size_ > 0);
    uint32_t frame = ring_[head_];
    head_ = (head_ + 1) % capacity_;
    --size_;
    return frame;
  }
  uint64_t metadata_bytes() const { return capacity_ * sizeof(uint32_t); }

 private:
  const uint32_t capacity_;
  uint32_t head_ = 0;
  uint32_t size_ = 0;
  std::unique_ptr<uint32_t[]> ring_;
};

}  // namespace spw::cache
