// SPW_CHECK: a bug stops the program, in release too. SPW_DCHECK: the same in the check build only, for what
// is too dear to test every time. Operating errors (a full disk, a bad option) are a Status, never a check.
#pragma once

namespace spw {

// Writes one line to standard error and aborts. Async-signal-safe; allocates nothing.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace spw

#define SPW_CHECK(condition)                               \
  do {                                                     \
    if (!(condition)) [[unlikely]]                         \
      ::spw::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)

#ifdef SPW_CHECKED
#define SPW_DCHECK(condition) SPW_CHECK(condition)
#else
#define SPW_DCHECK(condition) static_cast<void>(sizeof(!(condition)))
#endif
