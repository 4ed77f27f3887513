// Calls on FILEs under their ordinary names: what they read and write may be managed.
#define __NO_INLINE__ 1  // or stdio.h defines vprintf itself
#include <stdarg.h>

#include "libc/entry.h"
#include "libc/io/native_argument.h"
#include "libc/managed.h"
#include "libc/stdio/formatted.h"
#include "libc/stdio/stdio.h"
#include "libc/stdio/streams.h"

using namespace spw::libc;
using spw::InRuntime;

SPW_ENTRY FILE* fopen(const char* path, const char* mode) { return open_stream(Text(path), Text(mode)); }
SPW_ENTRY FILE* fopen64(const char* path, const char* mode) { return open_stream(Text(path), Text(mode)); }
SPW_ENTRY FILE* fdopen(int fd, const char* mode) noexcept { return stream_of_descriptor(fd, Text(mode)); }
SPW_ENTRY FILE* freopen(const char* path, const char* mode, FILE* file) {
  return reopen_stream(Text(path), Text(mode), file);
}
SPW_ENTRY FILE* freopen64(const char* path, const char* mode, FILE* file) {
  return reopen_stream(Text(path), Text(mode), file);
}
SPW_ENTRY FILE* popen(const char* command, const char* mode) {
  return open_command(Text(command), Text(mode));
}
SPW_ENTRY FILE* tmpfile64() {
  InRuntime native;
  return real().tmpfile();
}
SPW_ENTRY FILE* tmpfile() {
  InRuntime native;
  return real().tmpfile();
}
SPW_ENTRY FILE* fmemopen(void* buffer, size_t bytes, const char* mode) noexcept {
  const Text native_mode(mode);
  InRuntime native;
  return real().fmemopen(buffer, bytes, native_mode);
}
SPW_ENTRY FILE* open_memstream(char** text, size_t* bytes) noexcept {
  InRuntime native;
  return real().open_memstream(text, bytes);
}
SPW_ENTRY FILE* fopencookie(void* cookie, const char* mode, cookie_io_functions_t functions) noexcept {
  const Text native_mode(mode);
  InRuntime native;
  return real().fopencookie(cookie, native_mode, functions);
}

SPW_ENTRY size_t fread(void* buffer, size_t bytes, size_t count, FILE* file) {
  return read_file(buffer, bytes, count, file);
}
SPW_ENTRY size_t fwrite(const void* buffer, size_t bytes, size_t count, FILE* file) {
  return write_file(buffer, bytes, count, file);
}
SPW_ENTRY int fputs(const char* text, FILE* file) { return __spw_fputs_v1(text, file); }
SPW_ENTRY int puts(const char* text) { return __spw_puts_v1(text); }
// A call on managed memory takes the FILE's lock all the same: it is one more than needed, and harmless.
SPW_ENTRY size_t fread_unlocked(void* buffer, size_t bytes, size_t count, FILE* file) {
  return kernel_cannot_reach(buffer) ? read_file(buffer, bytes, count, file)
                                     : real().fread_unlocked(buffer, bytes, count, file);
}
SPW_ENTRY size_t fwrite_unlocked(const void* buffer, size_t bytes, size_t count, FILE* file) {
  return kernel_cannot_reach(buffer) ? write_file(buffer, bytes, count, file)
                                     : real().fwrite_unlocked(buffer, bytes, count, file);
}
SPW_ENTRY int fputs_unlocked(const char* text, FILE* file) {
  return kernel_cannot_reach(text) ? __spw_fputs_v1(text, file) : real().fputs_unlocked(text, file);
}

SPW_ENTRY int vfprintf(FILE* file, const char* format, va_list arguments) {
  return print_to_file(file, 0, format, arguments);
}
SPW_ENTRY int vprintf(const char* format, va_list arguments) {
  return print_to_file(stdout, 0, format, arguments);
}
SPW_ENTRY int vdprintf(int fd, const char* format, va_list arguments) {
  return print_to_fd(fd, 0, format, arguments);
}
SPW_ENTRY int __vfprintf_chk(FILE* file, int flag, const char* format, va_list arguments) {
  return print_to_file(file, flag, format, arguments);
}
SPW_ENTRY int __vprintf_chk(int flag, const char* format, va_list arguments) {
  return print_to_file(stdout, flag, format, arguments);
}
SPW_ENTRY int __vdprintf_chk(int fd, int flag, const char* format, va_list arguments) {
  return print_to_fd(fd, flag, format, arguments);
}

// The same with arguments behind the format.
#define SPW_PRINT(call)        \
  va_list arguments;           \
  va_start(arguments, format); \
  const int printed = call;    \
  va_end(arguments);           \
  return printed
SPW_ENTRY int fprintf(FILE* file, const char* format, ...) {
  SPW_PRINT(print_to_file(file, 0, format, arguments));
}
SPW_ENTRY int printf(const char* format, ...) { SPW_PRINT(print_to_file(stdout, 0, format, arguments)); }
SPW_ENTRY int dprintf(int fd, const char* format, ...) { SPW_PRINT(print_to_fd(fd, 0, format, arguments)); }
SPW_ENTRY int __fprintf_chk(FILE* file, int flag, const char* format, ...) {
  SPW_PRINT(print_to_file(file, flag, format, arguments));
}
SPW_ENTRY int __printf_chk(int flag, const char* format, ...) {
  SPW_PRINT(print_to_file(stdout, flag, format, arguments));
}
SPW_ENTRY int __dprintf_chk(int fd, int flag, const char* format, ...) {
  SPW_PRINT(print_to_fd(fd, flag, format, arguments));
}
#undef SPW_PRINT
