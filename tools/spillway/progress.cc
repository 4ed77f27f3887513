#include "progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

#include "platform/time.h"

namespace spw::tool {

namespace {
constexpr uint64_t kPatienceNs = 1'000'000'000, kOnTerminalNs = 200'000'000, kElsewhereNs = 10'000'000'000;
}

Progress::Progress(std::string what)
    : what_(std::move(what)),
      is_terminal_(::isatty(STDERR_FILENO) == 1),
      next_ns_(platform::monotonic_ns() + kPatienceNs) {}

Progress::~Progress() {
  if (has_told_ && is_terminal_) fmt::print(stderr, "\r\033[K");
}

void Progress::at(uint64_t done, uint64_t all) {
  const uint64_t now_ns = platform::monotonic_ns();
  if (now_ns < next_ns_ || all == 0) return;
  next_ns_ = now_ns + (is_terminal_ ? kOnTerminalNs : kElsewhereNs);
  has_told_ = true;
  const double share = 100 * static_cast<double>(done) / static_cast<double>(all);
  fmt::print(stderr, "{}{}: {:.0f} %{}", is_terminal_ ? "\r" : "", what_, share,
             is_terminal_ ? "\033[K" : "\n");
}

}  // namespace spw::tool
