#include "libc/stdio/formatted.h"

#include <errno.h>
#include <string.h>

#include "libc/io/buffered.h"
#include "libc/io/transfers.h"
#include "libc/managed.h"
#include "libc/real.h"

// Headers declare it with _FORTIFY_SOURCE only. With 0 for `flag` it is vsnprintf.
extern "C" int __vsnprintf_chk(char* out, size_t bytes, int flag, size_t room, const char* format,
                               va_list arguments);

namespace spw::libc {

namespace {

constexpr size_t kInlineBytes = 1024;

// Whether a string that is printed may be one that write(2) cannot reach.
bool may_print_managed(const char* format) {
  if (InRuntime::here() || context() == nullptr || kernel_reaches()) return false;
  return strpbrk(format, "sS") != nullptr || is_managed(format);
}

// A text of printf's in native memory. length() is negative where
// libc could not make it, or there is no room for it (errno).
class Formatted {
 public:
  Formatted(int flag, const char* format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    const int errno_of_m = errno;  // %m
    length_ = __vsnprintf_chk(inline_, kInlineBytes, flag, kInlineBytes, format, arguments);
    if (length_ >= static_cast<int>(kInlineBytes)) {
      errno = errno_of_m;
      make_whole(static_cast<size_t>(length_) + 1, flag, format, again);
    }
    va_end(again);
  }
  ~Formatted() {
    if (text_ == inline_) return;
    const int saved_errno = errno;
    libc_free(text_);
    errno = saved_errno;
  }
  Formatted(const Formatted&) = delete;
  Formatted& operator=(const Formatted&) = delete;

  const char* text() const { return text_; }
  int length() const { return length_; }

 private:
  void make_whole(size_t bytes, int flag, const char* format, va_list arguments) {
    char* whole = static_cast<char*>(libc_malloc(bytes));
    if (whole == nullptr) {
      length_ = -1;
      errno = ENOMEM;
      return;
    }
    text_ = whole;
    const int length = __vsnprintf_chk(whole, bytes, flag, bytes, format, arguments);
    length_ = length < static_cast<int>(bytes) ? length : static_cast<int>(bytes) - 1;
  }

  char inline_[kInlineBytes];
  char* text_ = inline_;
  int length_;
};

}  // namespace

int print_to_file(FILE* file, int flag, const char* format, va_list arguments) {
  if (!may_print_managed(format))
    return flag != 0 ? real().__vfprintf_chk(file, flag, format, arguments)
                     : real().vfprintf(file, format, arguments);
  const Formatted made(flag, format, arguments);
  if (made.length() <= 0) return made.length();
  const size_t bytes = static_cast<size_t>(made.length());
  return real().fwrite(made.text(), 1, bytes, file) == bytes ? made.length() : -1;
}

int print_to_fd(int fd, int flag, const char* format, va_list arguments) {
  FileCalls* calls = file_calls();
  if (!may_print_managed(format) && (calls == nullptr || !calls->has(fd)))
    return flag != 0 ? real().__vdprintf_chk(fd, flag, format, arguments)
                     : real().vdprintf(fd, format, arguments);
  const Formatted made(flag, format, arguments);
  for (int done = 0; done < made.length();) {
    const ssize_t wrote = write_fd(fd, made.text() + done, static_cast<size_t>(made.length() - done));
    if (wrote <= 0) return -1;
    done += static_cast<int>(wrote);
  }
  return made.length();
}

}  // namespace spw::libc
