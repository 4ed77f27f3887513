#include "base/check.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace spw {

void check_failed(const char* condition, const char* file, int line) {
  char text[512];
  int length =
      std::snprintf(text, sizeof text, "spillway: bug: %s does not hold at %s:%d\n", condition, file, line);
  if (length > 0) [[maybe_unused]]
    auto written = ::write(STDERR_FILENO, text, static_cast<size_t>(length));
  std::abort();
}

}  // namespace spw
