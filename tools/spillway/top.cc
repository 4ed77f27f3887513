// `spillway top`: a running program's counters, look by look.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include "base/units.h"
#include "commands.h"
#include "messages.h"
#include "platform/time.h"
#include "telemetry/live_page.h"
#include "top_areas.h"
#include "top_device.h"
#include "top_trace.h"

namespace spw::tool {

namespace {

using telemetry::Counter;
using telemetry::LivePage;
using telemetry::total;
using telemetry::Totals;

struct Look {
  Totals totals{};
  telemetry::Latencies latencies;
  std::optional<DeviceCounts> device;
  uint64_t at_ns = 0;
};

// The file system's name of a store, for the device under it: "spill:/mnt (io_uring, O_DIRECT)" -> "/mnt".
std::string path_of_store(const std::string& store) {
  const size_t begin = store.find('/');
  if (begin == store.npos) return {};
  const size_t end =
      std::min({store.find(" (", begin), store.find('?', begin), store.find(',', begin), store.size()});
  return store.substr(begin, end - begin);
}

uint64_t resident_blocks(const Totals& totals) {
  uint64_t came = 0;
  for (const Counter counter : {Counter::zero_fills, Counter::overwrites, Counter::adoptions, Counter::fills,
                                Counter::unit_fills, Counter::readahead_fills})
    came += total(totals, counter);
  const uint64_t left = total(totals, Counter::evictions) + total(totals, Counter::discards);
  return came - std::min(came, left);
}

uint64_t dirty_blocks(const Totals& totals, uint64_t block_bytes) {
  const uint64_t dirtied = total(totals, Counter::bytes_dirtied) / block_bytes;
  const uint64_t cleaned = total(totals, Counter::writebacks) + total(totals, Counter::zeros_left_out) +
                           total(totals, Counter::dirty_discards);
  return dirtied - std::min(dirtied, cleaned);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

// What happened between two looks.
class Interval {
 public:
  Interval(const Look& before, const Look& now)
      : before_(before), now_(now), seconds_(static_cast<double>(now.at_ns - before.at_ns) / 1e9) {}

  uint64_t count(Counter counter) const {
    return total(now_.totals, counter) - total(before_.totals, counter);
  }
  double rate(Counter counter) const { return static_cast<double>(count(counter)) / seconds_; }
  std::string hit_ratio() const {
    const auto ratio = telemetry::hit_ratio(count(Counter::shared_hits) + count(Counter::shared_waits),
                                            count(Counter::shared_misses));
    return ratio ? percent(*ratio) : "-";
  }
  std::string device() const {
    if (!before_.device || !now_.device) return "-";
    const double ms = seconds_ * 1000;
    return fmt::format(
        "{} busy, {:.1f} in flight, {}/s, {:.0f} requests/s",
        percent(std::min(1.0, static_cast<double>(now_.device->busy_ms - before_.device->busy_ms) / ms)),
        static_cast<double>(now_.device->waited_ms - before_.device->waited_ms) / ms,
        format_size(static_cast<uint64_t>(static_cast<double>(now_.device->bytes - before_.device->bytes) /
                                          seconds_)),
        static_cast<double>(now_.device->requests - before_.device->requests) / seconds_);
  }

 private:
  const Look& before_;
  const Look& now_;
  const double seconds_;
};

std::string picture(uint64_t process, const LivePage& page, const Device& device, const Look& before,
                    const Look& now, const std::vector<std::string>& hottest) {
  const telemetry::LiveHeader& header = page.header();
  const Interval interval(before, now);
  const auto per_s = [&](Counter counter) { return fmt::format("{:.0f}/s", interval.rate(counter)); };
  const auto bytes_per_s = [&](Counter counter) {
    return format_size(static_cast<uint64_t>(interval.rate(counter))) + "/s";
  };
  const uint64_t resident = resident_blocks(now.totals), dirty = dirty_blocks(now.totals, header.block_bytes);
  const double share =
      static_cast<double>(resident) / static_cast<double>(std::max<uint64_t>(header.frames, 1));
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<12} {}\n", name, value);
  };
  line("program", fmt::format("{} ({}), for {:.0f} s", header.program, process,
                              static_cast<double>(now.at_ns - header.started_ns) / 1e9));
  line("engine", fmt::format("{}, blocks of {}, store {}", header.engine, format_size(header.block_bytes),
                             header.store));
  line("memory", fmt::format("{} of {} in use ({} of the frames), about {} of it dirty",
                             format_size(resident * header.block_bytes), format_size(header.memory_cap_bytes),
                             percent(share), format_size(dirty * header.block_bytes)));
  const double uses = interval.rate(Counter::shared_hits) + interval.rate(Counter::shared_waits) +
                      interval.rate(Counter::shared_misses);
  line("hit ratio", fmt::format("{} of {:.0f} uses/s of the shared cache", interval.hit_ratio(), uses));
  line("misses",
       fmt::format("{}, read on demand {}, along with these {}, ahead {} (of which used {}), zeros {}",
                   per_s(Counter::shared_misses), per_s(Counter::fills), per_s(Counter::unit_fills),
                   per_s(Counter::readahead_fills), per_s(Counter::readahead_hits),
                   per_s(Counter::zero_fills)));
  line("miss took", telemetry::latency_text(summary_of(now.latencies.since(before.latencies))));
  line("evictions", fmt::format("{}, written {}", per_s(Counter::evictions), per_s(Counter::writebacks)));
  line("faults", fmt::format("{} missing, {} first stores, {} of code that was not recompiled",
                             per_s(Counter::missing_faults), per_s(Counter::protect_faults),
                             per_s(Counter::foreign_faults)));
  line("store", fmt::format("{} read, {} written, {} + {} requests", bytes_per_s(Counter::store_read_bytes),
                            bytes_per_s(Counter::store_write_bytes), per_s(Counter::store_reads),
                            per_s(Counter::store_writes)));
  line("disk " + device.name(), interval.device());
  for (size_t i = 0; i < hottest.size(); ++i) line(i == 0 ? "misses in" : "", hottest[i]);
  return text;
}

Look look_at(const LivePage& page, const Device& device) {
  return {page.totals(), page.miss_latencies(), device.read(), platform::monotonic_ns()};
}

bool is_alive(uint64_t process) { return ::kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM; }

// The process that is meant where none was named; 0 after a line that says why there is none.
uint64_t only_process() {
  const std::vector<uint64_t> all = LivePage::processes();
  if (all.size() == 1) return all.front();
  if (all.empty()) {
    refuse("no program of yours runs under Spillway now; spillway run starts one");
    return 0;
  }
  std::string names;
  for (const uint64_t process : all) {
    auto page = LivePage::open(process);
    names +=
        fmt::format("{}{} ({})", names.empty() ? "" : ", ", process, page ? page->header().program : "gone");
  }
  refuse("several programs run under Spillway; name one: " + names);
  return 0;
}

// Calls show(how many were before) for one look after the other, until there were enough or the process ends.
template <class Show>
void look_on(uint64_t process, const TopArguments& arguments, Show show) {
  for (uint64_t looks = 0; arguments.count == 0 || looks < arguments.count; ++looks) {
    show(looks);
    std::fflush(stdout);
    if (is_alive(process)) continue;
    fmt::print("{} has ended\n", process);
    return;
  }
}

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

void follow_trace(uint64_t process, const LivePage& page, const TopArguments& arguments) {
  LivePage::TraceCounts seen;
  look_on(process, arguments, [&](uint64_t looks) {
    if (looks > 0) sleep_for(arguments.interval_s);
    fmt::print("{}", trace_lines(page, seen));
  });
}

}  // namespace

int show_top(const TopArguments& arguments) {
  const uint64_t process = arguments.process != 0 ? arguments.process : only_process();
  if (process == 0) return kExitUsage;
  auto page = LivePage::open(process);
  if (!page) return refuse(page.status().message());
  if (arguments.trace) {
    follow_trace(process, *page, arguments);
    return kExitOk;
  }
  const Device device(path_of_store(page->header().store));
  const bool is_screen = ::isatty(STDOUT_FILENO) == 1;
  Look before = look_at(*page, device);
  LivePage::MissCounts misses = page->miss_counts();
  CodeNames names;
  look_on(process, arguments, [&](uint64_t looks) {
    sleep_for(arguments.interval_s);
    const Look now = look_at(*page, device);
    // Home, the picture, and what is left of an older one away.
    const char *const begin = is_screen ? "\033[H" : "", *const end = is_screen ? "\033[J" : "\n";
    if (is_screen && looks == 0) fmt::print("\033[2J");
    fmt::print("{}{}{}", begin,
               picture(process, *page, device, before, now, hottest_areas(process, *page, misses, names)),
               end);
    before = now;
  });
  return kExitOk;
}

}  // namespace spw::tool
