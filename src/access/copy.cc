#include "access/copy.h"

#include <string.h>

#include "access/cursor.h"
#include "base/few_bytes.h"

namespace spw::access {

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

}  // namespace spw::access
