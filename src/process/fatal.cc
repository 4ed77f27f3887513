#include "process/fatal.h"

#include <sys/uio.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/need.h"

namespace spw::process {

namespace {

void write_line(std::string_view prefix, std::string_view line) {
  auto part = [](std::string_view text) { return iovec{const_cast<char*>(text.data()), text.size()}; };
  iovec parts[] = {part(prefix), part(line), part("\n")};
  [[maybe_unused]] auto written = ::writev(STDERR_FILENO, parts, 3);
}

// A warning may come on any stack and under any lock, so that nothing is allocated here. A line that is being put here
// has no bytes yet.
struct KeptWarnings {
  Atomic<uint32_t> claimed{0};
  struct Line {
    Atomic<uint32_t> bytes{0};
    char text[kWarningBytesMax] = {};
  } lines[kWarningsKept];

  void put(std::string_view line) {
    if (claimed.load_relaxed() >= kWarningsKept) return;
    const uint32_t at = claimed.fetch_add_relaxed(1);
    if (at >= kWarningsKept) return;
    const auto bytes = static_cast<uint32_t>(line.copy(lines[at].text, kWarningBytesMax));
    lines[at].bytes.store_release(bytes);
  }
};
KeptWarnings g_warnings;

}  // namespace

void fatal(int exit_code, std::string_view line) {
  // Many threads may fail of one cause: the first speaks, the others wait for the end it brings. (A thread that waits
  // here may hold any lock: _exit takes none.)
  await_end_of_others();
  tell(line);
  ::_exit(exit_code);
}

void tell(std::string_view line) { write_line("spillway: ", line); }

void warn(std::string_view line) {
  write_line("spillway: warning: ", line);
  g_warnings.put(line);
}

std::vector<std::string> warnings() {
  std::vector<std::string> all;
  for (const KeptWarnings::Line& line : g_warnings.lines)
    if (const uint32_t bytes = line.bytes.load_acquire(); bytes != 0) all.emplace_back(line.text, bytes);
  return all;
}

}  // namespace spw::process
