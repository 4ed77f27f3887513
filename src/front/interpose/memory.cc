#include "front/interpose/memory.h"

#include <string.h>

#include "base/few_bytes.h"
#include "front/interpose/cursor.h"
#include "front/interpose/entry.h"
#include "front/interpose/search.h"

namespace spw::interpose {

using cache::Access;

namespace {

void copy_forward(void* to, const void* from, size_t bytes, Access write) {
  Cursor source(from, bytes, Access::kRead), target(to, bytes, write);
  while (bytes > 0) {
    size_t step =
        source
            .available();  // pinned first: a block copied onto itself must not be pinned for overwriting cold
    step = std::min(step, target.available());
    memmove(target.data(), source.data(), step);
    source.advance(step);
    target.advance(step);
    bytes -= step;
  }
}

void copy_backward(void* to, const void* from, size_t bytes) {
  auto* to_end = static_cast<char*>(to) + bytes;
  auto* from_end = static_cast<const char*>(from) + bytes;
  while (bytes > 0) {
    size_t step = std::min({bytes, bytes_before_in_block(to_end), bytes_before_in_block(from_end)});
    to_end -= step;
    from_end -= step;
    Piece source(from_end, step, Access::kRead), target(to_end, step, Access::kWrite);
    memmove(target.data(), source.data(), step);
    bytes -= step;
  }
}

}  // namespace

void copy_bytes(void* to, const void* from, size_t bytes) {
  if (!any_elsewhere(to, from)) {
    memcpy(to, from, bytes);
    return;
  }
  if (bytes <= kFewBytesMax && context()->access->copy_few(to, from, bytes)) return;
  copy_forward(to, from, bytes, Access::kOverwrite);
}

void move_bytes(void* to, const void* from, size_t bytes) {
  if (!any_elsewhere(to, from)) {
    memmove(to, from, bytes);
    return;
  }
  if (bytes <= kFewBytesMax && context()->access->copy_few(to, from, bytes)) return;
  auto target = reinterpret_cast<uintptr_t>(to), source = reinterpret_cast<uintptr_t>(from);
  bool overlap = target < source + bytes && source < target + bytes;
  // Where they overlap, a block that is wholly overwritten may hold bytes that are still to be read.
  if (!overlap)
    copy_forward(to, from, bytes, Access::kOverwrite);
  else if (target < source)
    copy_forward(to, from, bytes, Access::kWrite);
  else if (target > source)
    copy_backward(to, from, bytes);
}

void fill_bytes(void* to, int value, size_t bytes) {
  for (Cursor target(to, bytes, Access::kOverwrite); size_t step = target.available();) {
    memset(target.data(), value, step);
    target.advance(step);
  }
}

int compare_bytes(const void* a, const void* b, size_t bytes) {
  Cursor left(a, bytes, Access::kRead), right(b, bytes, Access::kRead);
  while (size_t step = std::min(left.available(), right.available())) {
    if (int order = memcmp(left.data(), right.data(), step)) return order;
    left.advance(step);
    right.advance(step);
  }
  return 0;
}

namespace {

void* find_byte(const void* start, int value, size_t bytes) {
  Cursor walk(start, bytes, Access::kRead);
  size_t passed = 0;
  while (size_t step = walk.available()) {
    if (void* hit = memchr(walk.data(), value, step)) {
      size_t at = passed + static_cast<size_t>(static_cast<std::byte*>(hit) - walk.data());
      return static_cast<char*>(const_cast<void*>(start)) + at;
    }
    walk.advance(step);
    passed += step;
  }
  return nullptr;
}

void* find_last_byte(const void* start, int value, size_t bytes) {
  auto* begin = static_cast<char*>(const_cast<void*>(start));
  while (bytes > 0) {
    size_t step = std::min(bytes, bytes_before_in_block(begin + bytes));
    bytes -= step;
    Piece piece(begin + bytes, step, Access::kRead);
    if (void* hit = memrchr(piece.data(), value, step))
      return begin + bytes + (static_cast<std::byte*>(hit) - piece.data());
  }
  return nullptr;
}

}  // namespace
}  // namespace spw::interpose

using namespace spw::interpose;

SPW_ENTRY void* __spw_memcpy_v1(void* to, const void* from, size_t bytes) {
  copy_bytes(to, from, bytes);
  return to;
}
SPW_ENTRY void* __spw_memmove_v1(void* to, const void* from, size_t bytes) {
  move_bytes(to, from, bytes);
  return to;
}
SPW_ENTRY void* __spw_memset_v1(void* to, int value, size_t bytes) {
  if (!is_elsewhere(to)) return memset(to, value, bytes);
  fill_bytes(to, value, bytes);
  return to;
}
SPW_ENTRY void* __spw_mempcpy_v1(void* to, const void* from, size_t bytes) {
  copy_bytes(to, from, bytes);
  return static_cast<char*>(to) + bytes;
}
SPW_ENTRY int __spw_memcmp_v1(const void* a, const void* b, size_t bytes) {
  return any_elsewhere(a, b) ? compare_bytes(a, b, bytes) : memcmp(a, b, bytes);
}
SPW_ENTRY int __spw_bcmp_v1(const void* a, const void* b, size_t bytes) {
  return any_elsewhere(a, b) ? compare_bytes(a, b, bytes) : memcmp(a, b, bytes);
}
SPW_ENTRY void* __spw_memchr_v1(const void* start, int value, size_t bytes) {
  return is_elsewhere(start) ? find_byte(start, value, bytes)
                             : const_cast<void*>(memchr(start, value, bytes));
}
SPW_ENTRY void* __spw_memrchr_v1(const void* start, int value, size_t bytes) {
  return is_elsewhere(start) ? find_last_byte(start, value, bytes)
                             : const_cast<void*>(memrchr(start, value, bytes));
}
SPW_ENTRY void* __spw_rawmemchr_v1(const void* start, int value) {
  return is_elsewhere(start) ? find_byte(start, value, kUnknownLength)
                             : const_cast<void*>(rawmemchr(start, value));
}
SPW_ENTRY void* __spw_memmem_v1(const void* in, size_t in_bytes, const void* what, size_t what_bytes) {
  if (!any_elsewhere(in, what)) return memmem(in, in_bytes, what, what_bytes);
  return find_sequence(in, in_bytes, what, what_bytes);
}
