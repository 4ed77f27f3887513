#include "process/slow_end.h"

#include <unistd.h>

#include <chrono>
#include <string>

#include "base/units.h"
#include "process/closing.h"
#include "process/fatal.h"
#include "telemetry/counters.h"

namespace spw::process {

namespace {

uint64_t written_bytes() {
  return telemetry::total(telemetry::read_totals(), telemetry::Counter::store_write_bytes);
}

constexpr std::string_view kSameLine = "\r", kRestOfLine = "\033[K";

}  // namespace

SlowEnd::SlowEnd(bool speaks, uint64_t patience_ns)
    : patience_ns_(patience_ns), written_before_(speaks ? written_bytes() : 0) {
  if (!speaks || !has_standard_error()) return;
  if (auto thread = platform::Thread::start([this] { keep_telling(); })) tells_ = std::move(*thread);
}

SlowEnd::~SlowEnd() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    wake_.notify_all();
  }
  tells_.join();
}

void SlowEnd::keep_telling() {
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;
  const auto is_over = [this] { return is_over_; };
  bool has_told = false;
  std::unique_lock lock(mutex_);
  for (uint64_t wait_ns = patience_ns_; !wake_.wait_for(lock, std::chrono::nanoseconds(wait_ns), is_over);) {
    wait_ns = is_terminal ? kOnTerminalNs : kElsewhereNs;
    const std::string line = "the program has ended; what it stored to files is being written: " +
                             format_size(written_bytes() - written_before_);
    if (is_terminal) {
      const std::string text = std::string(kSameLine) + "spillway: " + line + std::string(kRestOfLine);
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
    } else {
      tell(line);
    }
    has_told = true;
  }
  if (has_told && is_terminal) [[maybe_unused]]
    const auto written = ::write(STDERR_FILENO, "\n", 1);
}

}  // namespace spw::process
