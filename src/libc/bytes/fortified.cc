#include "libc/bytes/fortified.h"

#include "libc/bytes/memory.h"
#include "libc/bytes/strings.h"
#include "libc/entry.h"
#include "libc/managed.h"
#include "libc/stdio/stdio.h"

extern "C" [[noreturn]] void __chk_fail();

namespace spw::libc {

namespace {

// A text with its end.
const char* fitting(const char* text, size_t room) {
  if (string_length(text, room) == room) __chk_fail();
  return text;
}
// `more` and an end behind a text.
void expect_room_behind(const char* text, size_t more, size_t room) {
  const size_t used = string_length(text, room);
  if (used == room || more >= room - used) __chk_fail();
}

}  // namespace

size_t fitting(size_t bytes, size_t room) {
  if (bytes > room) __chk_fail();
  return bytes;
}

void expect_room(size_t count, size_t bytes, size_t room) {
  size_t all;
  if (__builtin_mul_overflow(count, bytes, &all) || all > room) __chk_fail();
}

}  // namespace spw::libc

using namespace spw::libc;

SPW_ENTRY void* __spw___memcpy_chk_v1(void* to, const void* from, size_t bytes, size_t room) {
  return __spw_memcpy_v1(to, from, fitting(bytes, room));
}
SPW_ENTRY void* __spw___memmove_chk_v1(void* to, const void* from, size_t bytes, size_t room) {
  return __spw_memmove_v1(to, from, fitting(bytes, room));
}
SPW_ENTRY void* __spw___mempcpy_chk_v1(void* to, const void* from, size_t bytes, size_t room) {
  return __spw_mempcpy_v1(to, from, fitting(bytes, room));
}
SPW_ENTRY void* __spw___memset_chk_v1(void* to, int value, size_t bytes, size_t room) {
  return __spw_memset_v1(to, value, fitting(bytes, room));
}
SPW_ENTRY char* __spw___strcpy_chk_v1(char* to, const char* from, size_t room) {
  return __spw_strcpy_v1(to, fitting(from, room));
}
SPW_ENTRY char* __spw___stpcpy_chk_v1(char* to, const char* from, size_t room) {
  return __spw_stpcpy_v1(to, fitting(from, room));
}
SPW_ENTRY char* __spw___strncpy_chk_v1(char* to, const char* from, size_t bytes, size_t room) {
  return __spw_strncpy_v1(to, from, fitting(bytes, room));
}
SPW_ENTRY char* __spw___strcat_chk_v1(char* to, const char* from, size_t room) {
  expect_room_behind(to, string_length(from), room);
  return __spw_strcat_v1(to, from);
}
SPW_ENTRY char* __spw___strncat_chk_v1(char* to, const char* from, size_t bytes_max, size_t room) {
  expect_room_behind(to, string_length(from, bytes_max), room);
  return __spw_strncat_v1(to, from, bytes_max);
}
SPW_ENTRY char* __spw___fgets_chk_v1(char* buffer, size_t room, int bytes, FILE* file) {
  if (bytes <= 0 || static_cast<size_t>(bytes) <= room) return __spw_fgets_v1(buffer, bytes, file);
  // Only a line that is longer than there is room for ends the program.
  if (room < 2) __chk_fail();
  char* line = __spw_fgets_v1(buffer, static_cast<int>(room), file);
  if (line == nullptr || string_length(line) + 1 < room) return line;
  if (load_value(line + room - 2) != '\n' && ungetc(getc(file), file) != EOF) __chk_fail();
  return line;
}
