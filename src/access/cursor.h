// A walk along memory that may be managed or plain: pieces of it as raw pointers, pinned one window at a time.
//
// Invariant: at most one window is pinned, and only between available() and the end of its piece.
// Threads: one. Limits: of the two or three cursors an operation uses, each holds one of kWindowsPerThread windows.
#pragma once

#include <algorithm>
#include <cstddef>

#include "access/context.h"

namespace spw::access {

inline constexpr size_t kUnknownLength = SIZE_MAX;

class Cursor {
 public:
  // `bytes`: how many may be walked at most; kUnknownLength for strings.
  Cursor(const void* start, size_t bytes, cache::Access how) : left_(bytes), how_(how) {
    if (is_elsewhere(start)) {
      address_ = reinterpret_cast<uintptr_t>(start);
    } else {
      data_ = static_cast<std::byte*>(const_cast<void*>(start));
      here_ = bytes;
    }
  }
  ~Cursor() { close(); }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  // Bytes that can be touched at data() now; 0 only at the end.
  size_t available() {
    if (here_ == 0 && left_ != 0) open();
    return here_;
  }
  std::byte* data() const { return data_; }
  const char* chars() const { return reinterpret_cast<const char*>(data_); }
  // n <= available().
  void advance(size_t n) {
    data_ += n;
    here_ -= n;
    if (left_ != kUnknownLength) left_ -= n;
    if (here_ == 0) close();
  }

 private:
  void open() {
    size_t wanted = left_ == kUnknownLength ? uint64_t{1} << kMaxBlockShift : left_;
    window_ = context()->access->pin(address_, wanted, how_);
    data_ = window_.data;
    here_ = window_.bytes;
    address_ += here_;
  }
  void close() {
    if (window_.data == nullptr) return;
    context()->access->unpin(window_);
    window_ = {};
  }

  std::byte* data_ = nullptr;
  size_t here_ = 0;
  size_t left_;
  uintptr_t address_ = 0;  // of the next window
  access::Window window_;
  const cache::Access how_;
};

// One pinned piece at an address, for walks that go backwards.
class Piece {
 public:
  Piece(const void* start, size_t bytes, cache::Access how) {
    if (!is_elsewhere(start)) {
      data_ = static_cast<std::byte*>(const_cast<void*>(start));
      return;
    }
    window_ = context()->access->pin(reinterpret_cast<uintptr_t>(start), bytes, how);
    data_ = window_.data;
  }
  ~Piece() {
    if (window_.data != nullptr) context()->access->unpin(window_);
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  std::byte* data() const { return data_; }

 private:
  access::Window window_;
  std::byte* data_ = nullptr;
};

// Bytes before `end` that surely lie in one block with the byte before it.
inline size_t bytes_before_in_block(const void* end) {
  if (!is_elsewhere(end) && !is_elsewhere(static_cast<const char*>(end) - 1)) return kUnknownLength;
  size_t offset = reinterpret_cast<uintptr_t>(end) & (SPW_GRANULE_BYTES - 1);
  return offset == 0 ? SPW_GRANULE_BYTES : offset;
}

}  // namespace spw::access
