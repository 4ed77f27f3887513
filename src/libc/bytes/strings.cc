#include "libc/bytes/strings.h"

#include <string.h>
#include <strings.h>

#include "access/cursor.h"
#include "libc/bytes/search.h"
#include "libc/entry.h"
#include "libc/managed.h"
#include "libc/map/parts.h"

namespace spw::libc {

using access::Cursor;
using access::kUnknownLength;
using cache::Access;

size_t string_length(const char* text, size_t bytes_max) {
  if (!is_elsewhere(text)) return bytes_max == kUnknownLength ? strlen(text) : strnlen(text, bytes_max);
  Cursor walk(text, bytes_max, Access::kRead);
  size_t passed = 0;
  while (size_t step = walk.available()) {
    size_t length = strnlen(walk.chars(), step);
    passed += length;
    if (length < step) break;
    walk.advance(step);
  }
  return passed;
}

size_t string_length(const char* text) { return string_length(text, kUnknownLength); }

NativeString::NativeString(const char* text) : text_(text) {
  if (!kernel_cannot_reach(text)) return;
  if (reachable_bytes(text, 1, false) == 0) return;  // EFAULT, by the kernel
  size_t bytes = string_length(text) + 1;
  text_ = copy_ = static_cast<char*>(libc_malloc(bytes));
  if (copy_ != nullptr) copy_bytes(copy_, text, bytes);
}

namespace {

// Compares like `order` (strncmp or strncasecmp), window by window. libc's bounded comparison stops at a terminator by
// itself, so a plain string is never read behind its end.
template <class Order>
int compare_strings(const char* a, const char* b, size_t bytes_max, Order order) {
  Cursor left(a, bytes_max, Access::kRead), right(b, bytes_max, Access::kRead);
  for (;;) {
    size_t step = left.available();
    step = std::min(step, right.available());
    if (step == 0) return 0;
    if (int result = order(left.chars(), right.chars(), step)) return result;
    const Cursor& managed = is_elsewhere(a) ? left : right;
    if (strnlen(managed.chars(), step) < step) return 0;
    left.advance(step);
    right.advance(step);
  }
}

// The first `value` or, if `or_end`, the terminator.
char* find_char(const char* text, int value, bool or_end) {
  Cursor walk(text, kUnknownLength, Access::kRead);
  for (size_t passed = 0;;) {
    size_t step = walk.available(), length = strnlen(walk.chars(), step);
    bool ends = length < step;
    const void* hit = memchr(walk.chars(), value, ends ? length + 1 : length);
    if (hit != nullptr)
      return const_cast<char*>(text) + passed + (static_cast<const char*>(hit) - walk.chars());
    if (ends) return or_end ? const_cast<char*>(text) + passed + length : nullptr;
    walk.advance(step);
    passed += step;
  }
}

char* find_last_char(const char* text, int value) {
  Cursor walk(text, kUnknownLength, Access::kRead);
  char* last = nullptr;
  for (size_t passed = 0;;) {
    size_t step = walk.available(), length = strnlen(walk.chars(), step);
    bool ends = length < step;
    if (const void* hit = memrchr(walk.chars(), value, ends ? length + 1 : length))
      last = const_cast<char*>(text) + passed + (static_cast<const char*>(hit) - walk.chars());
    if (ends) return last;
    walk.advance(step);
    passed += step;
  }
}

char* copy_string(char* to, const char* from) {
  size_t length = string_length(from);
  copy_bytes(to, from, length + 1);
  return to + length;
}

char* append(char* to, const char* from, size_t bytes_max) {
  char* end = to + string_length(to);
  size_t length = string_length(from, bytes_max);
  copy_bytes(end, from, length);
  store_value(end + length, '\0');
  return to;
}

}  // namespace
}  // namespace spw::libc

using namespace spw::libc;

SPW_ENTRY size_t __spw_strlen_v1(const char* text) { return string_length(text); }
SPW_ENTRY size_t __spw_strnlen_v1(const char* text, size_t bytes_max) {
  return string_length(text, bytes_max);
}
SPW_ENTRY int __spw_strcmp_v1(const char* a, const char* b) {
  return any_elsewhere(a, b) ? compare_strings(a, b, kUnknownLength, strncmp) : strcmp(a, b);
}
SPW_ENTRY int __spw_strncmp_v1(const char* a, const char* b, size_t bytes_max) {
  return any_elsewhere(a, b) ? compare_strings(a, b, bytes_max, strncmp) : strncmp(a, b, bytes_max);
}
SPW_ENTRY int __spw_strcasecmp_v1(const char* a, const char* b) {
  return any_elsewhere(a, b) ? compare_strings(a, b, kUnknownLength, strncasecmp) : strcasecmp(a, b);
}
SPW_ENTRY int __spw_strncasecmp_v1(const char* a, const char* b, size_t bytes_max) {
  return any_elsewhere(a, b) ? compare_strings(a, b, bytes_max, strncasecmp) : strncasecmp(a, b, bytes_max);
}
SPW_ENTRY char* __spw_strchr_v1(const char* text, int value) {
  return is_elsewhere(text) ? find_char(text, value, false) : const_cast<char*>(strchr(text, value));
}
SPW_ENTRY char* __spw_strchrnul_v1(const char* text, int value) {
  return is_elsewhere(text) ? find_char(text, value, true) : const_cast<char*>(strchrnul(text, value));
}
SPW_ENTRY char* __spw_strrchr_v1(const char* text, int value) {
  return is_elsewhere(text) ? find_last_char(text, value) : const_cast<char*>(strrchr(text, value));
}
SPW_ENTRY char* __spw_strstr_v1(const char* text, const char* what) {
  if (!any_elsewhere(text, what)) return const_cast<char*>(strstr(text, what));
  return find_in_string(text, what, string_length(what));
}
SPW_ENTRY char* __spw_stpcpy_v1(char* to, const char* from) {
  return any_elsewhere(to, from) ? copy_string(to, from) : stpcpy(to, from);
}
SPW_ENTRY char* __spw_strcpy_v1(char* to, const char* from) {
  if (!any_elsewhere(to, from)) return strcpy(to, from);
  copy_string(to, from);
  return to;
}
SPW_ENTRY char* __spw_strncpy_v1(char* to, const char* from, size_t bytes) {
  if (!any_elsewhere(to, from)) return strncpy(to, from, bytes);
  size_t length = string_length(from, bytes);
  copy_bytes(to, from, length);
  fill_bytes(to + length, 0, bytes - length);
  return to;
}
SPW_ENTRY char* __spw_strcat_v1(char* to, const char* from) {
  return any_elsewhere(to, from) ? append(to, from, kUnknownLength) : strcat(to, from);
}
SPW_ENTRY char* __spw_strncat_v1(char* to, const char* from, size_t bytes_max) {
  return any_elsewhere(to, from) ? append(to, from, bytes_max) : strncat(to, from, bytes_max);
}
