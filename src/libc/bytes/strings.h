// The string functions on strings of which any may be managed.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <memory>

#include "libc/real.h"

namespace spw::libc {

size_t string_length(const char* text);
size_t string_length(const char* text, size_t bytes_max);

// A managed string as a native one for libc to read; a plain string as it is. Out of memory: get() is nullptr.
class NativeString {
 public:
  explicit NativeString(const char* text);
  ~NativeString() { libc_free(copy_); }
  NativeString(const NativeString&) = delete;
  NativeString& operator=(const NativeString&) = delete;
  const char* get() const { return text_; }

 private:
  char* copy_ = nullptr;
  const char* text_;
};

}  // namespace spw::libc

extern "C" {
size_t __spw_strlen_v1(const char* text);
size_t __spw_strnlen_v1(const char* text, size_t bytes_max);
int __spw_strcmp_v1(const char* a, const char* b);
int __spw_strncmp_v1(const char* a, const char* b, size_t bytes_max);
int __spw_strcasecmp_v1(const char* a, const char* b);
int __spw_strncasecmp_v1(const char* a, const char* b, size_t bytes_max);
char* __spw_strchr_v1(const char* text, int value);
char* __spw_strrchr_v1(const char* text, int value);
char* __spw_strchrnul_v1(const char* text, int value);
char* __spw_strstr_v1(const char* text, const char* what);
char* __spw_strcpy_v1(char* to, const char* from);
char* __spw_stpcpy_v1(char* to, const char* from);
char* __spw_strncpy_v1(char* to, const char* from, size_t bytes);
char* __spw_strcat_v1(char* to, const char* from);
char* __spw_strncat_v1(char* to, const char* from, size_t bytes_max);
}
