#include "libc/bytes/memory.h"

#include <string.h>

#include "access/cursor.h"
#include "libc/bytes/search.h"
#include "libc/entry.h"
#include "libc/managed.h"

namespace spw::libc {

using access::bytes_before_in_block;
using access::Cursor;
using access::kUnknownLength;
using access::Piece;
using cache::Access;

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
}  // namespace spw::libc

using namespace spw::libc;

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
