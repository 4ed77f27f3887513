#include "process/fatal.h"

#include <sys/uio.h>
#include <unistd.h>

#include "base/atomic.h"

namespace spw::process {

namespace {

void write_line(std::string_view prefix, std::string_view line) {
  auto part = [](std::string_view text) { return iovec{const_cast<char*>(text.data()), text.size()}; };
  iovec parts[] = {part(prefix), part(line), part("\n")};
  [[maybe_unused]] auto written = ::writev(STDERR_FILENO, parts, 3);
}

}  // namespace

void fatal(int exit_code, std::string_view line) {
  // Many threads may fail of one cause: the first speaks, the others wait for the end it brings. (A thread that waits
  // here may hold any lock: _exit takes none.)
  static Atomic<bool> ending{false};
  if (ending.exchange_acquire(true))
    for (;;) ::pause();
  tell(line);
  ::_exit(exit_code);
}

void tell(std::string_view line) { write_line("spillway: ", line); }

void warn(std::string_view line) { write_line("spillway: warning: ", line); }

}  // namespace spw::process
