#include "libc/bytes/search.h"

#include <string.h>

#include <memory>
#include <vector>

#include "access/cursor.h"
#include "libc/managed.h"
#include "libc/real.h"

namespace spw::libc {

using access::Cursor;
using access::kUnknownLength;
namespace {

// Knuth, Morris and Pratt's search, fed piece by piece: what it remembers between pieces is one number, so block edges
// need no care.
class Matcher {
 public:
  Matcher(const void* what, size_t bytes) : bytes_(bytes) {
    if (bytes >> 32 != 0) return;
    what_.reset(static_cast<unsigned char*>(libc_malloc(bytes)));
    border_.reset(static_cast<uint32_t*>(libc_malloc(bytes * sizeof(uint32_t))));
    if (what_ == nullptr || border_ == nullptr) return;
    copy_bytes(what_.get(), what, bytes);
    border_[0] = 0;
    for (uint32_t i = 1, matched = 0; i < bytes; ++i) {
      while (matched > 0 && what_[i] != what_[matched]) matched = border_[matched - 1];
      if (what_[i] == what_[matched]) ++matched;
      border_[i] = matched;
    }
    ready_ = true;
  }
  bool ready() const { return ready_; }

  // Bytes of the piece up to and including the end of the first match; SIZE_MAX when it does not end here.
  size_t feed(const unsigned char* piece, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      if (matched_ == 0) {  // skip to the first byte at memchr's speed
        auto* hit = static_cast<const unsigned char*>(memchr(piece + i, what_[0], bytes - i));
        if (hit == nullptr) return SIZE_MAX;
        i = static_cast<size_t>(hit - piece);
      }
      while (matched_ > 0 && piece[i] != what_[matched_]) matched_ = border_[matched_ - 1];
      if (piece[i] == what_[matched_]) ++matched_;
      if (matched_ == bytes_) return i + 1;
    }
    return SIZE_MAX;
  }

 private:
  const size_t bytes_;
  size_t matched_ = 0;
  bool ready_ = false;
  std::unique_ptr<unsigned char[], FreeNative> what_;
  std::unique_ptr<uint32_t[], FreeNative> border_;
};

}  // namespace

void* find_sequence(const void* in, size_t in_bytes, const void* what, size_t what_bytes) {
  auto* begin = static_cast<char*>(const_cast<void*>(in));
  if (what_bytes == 0) return begin;
  if (what_bytes > in_bytes) return nullptr;
  Matcher matcher(what, what_bytes);
  if (!matcher.ready()) return nullptr;
  Cursor walk(in, in_bytes, cache::Access::kRead);
  for (size_t passed = 0; size_t step = walk.available(); passed += step) {
    size_t end = matcher.feed(reinterpret_cast<const unsigned char*>(walk.data()), step);
    if (end != SIZE_MAX) return begin + (passed + end - what_bytes);
    walk.advance(step);
  }
  return nullptr;
}

char* find_in_string(const char* in, const void* what, size_t what_bytes) {
  auto* begin = const_cast<char*>(in);
  if (what_bytes == 0) return begin;
  Matcher matcher(what, what_bytes);
  if (!matcher.ready()) return nullptr;
  Cursor walk(in, is_elsewhere(in) ? kUnknownLength : strlen(in), cache::Access::kRead);
  for (size_t passed = 0; size_t step = walk.available(); passed += step) {
    size_t length = strnlen(walk.chars(), step);
    size_t end = matcher.feed(reinterpret_cast<const unsigned char*>(walk.data()), length);
    if (end != SIZE_MAX) return begin + (passed + end - what_bytes);
    if (length < step) return nullptr;
    walk.advance(step);
  }
  return nullptr;
}

}  // namespace spw::libc
