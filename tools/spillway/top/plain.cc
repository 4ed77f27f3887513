#include "top/plain.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/units.h"
#include "messages.h"
#include "platform/time.h"
#include "top/areas.h"
#include "top/device.h"
#include "top/text.h"
#include "top/trace.h"

namespace spw::tool::top {

namespace {

using telemetry::Counter;
using telemetry::LivePage;

std::string device_text(const Numbers& numbers) {
  if (!numbers.device) return "-";
  const DeviceUse& use = *numbers.device;
  return fmt::format("{} busy, {:.1f} in flight, {}/s, {:.0f} requests/s", percent_text(use.busy),
                     use.in_flight, bytes_text(use.read_bytes_s + use.write_bytes_s), use.requests_s);
}

std::vector<std::string> process_lines(const Run& run) {
  std::vector<std::string> lines;
  for (const TreeRow& row : tree_rows(run.processes, ProcessSort::kMisses, false)) {
    const Process& process = run.processes[row.process];
    const auto share = process.cap_share();
    lines.push_back(fmt::format("{:>8} {:>10} resident {:>8} of the cap {:>8} misses/s  {}{}", process.id,
                                format_size(process.resident_bytes), share ? percent_text(*share) : "-",
                                process.misses_s ? count_text(*process.misses_s) : "-", row.branch,
                                process.program));
  }
  return lines;
}

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Calls show(how many were before) for one look after the other, until there were enough or the process ends.
template <class Show>
void look_on(uint64_t process, const TopArguments& arguments, Show show) {
  const uint64_t started = start_of(process);
  for (uint64_t looks = 0; arguments.count == 0 || looks < arguments.count; ++looks) {
    show(looks);
    // Nobody reads any more: a full disk, or a pipe whose signal is ignored.
    if (std::fflush(stdout) != 0) return;
    if (is_running(process, started)) continue;
    fmt::print("{} has ended\n", process);
    return;
  }
}

void follow_trace(uint64_t process, const LivePage& page, const PageFacts& facts,
                  const TopArguments& arguments) {
  LivePage::TraceCounts seen;
  look_on(process, arguments, [&](uint64_t looks) {
    if (looks > 0) sleep_for(arguments.interval_s);
    for (const std::string& line : trace_lines(page, facts, seen)) fmt::print("{}\n", line);
  });
}

}  // namespace

std::string picture(const PageFacts& facts, const std::string& device_name, const Numbers& numbers,
                    double running_s, const std::vector<std::string>& hottest, const Run* run) {
  const auto per_s = [&](Counter counter) { return fmt::format("{:.0f}/s", numbers.rate(counter)); };
  const auto bytes_per_s = [&](Counter counter) { return bytes_text(numbers.rate(counter)) + "/s"; };
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<12} {}\n", name, value);
  };
  line("program", fmt::format("{} ({}), for {:.0f} s", facts.program, facts.process, running_s));
  line("engine",
       fmt::format("{}, blocks of {}, store {}", facts.engine, format_size(facts.block_bytes), facts.store));
  line("memory", fmt::format("{} of {} in use ({} of the frames), about {} of it dirty",
                             format_size(numbers.resident_bytes), format_size(facts.memory_cap_bytes),
                             percent_text(numbers.frames_share), format_size(numbers.dirty_bytes)));
  if (numbers.compressed_bytes > 0)
    line("compressed",
         fmt::format(
             "{} of memory for pages that came to 1/{:.1f}, {} read from there, {} kept, {} to the store",
             format_size(numbers.compressed_bytes), numbers.compressed_ratio, per_s(Counter::compressed_hits),
             per_s(Counter::compressed_pages), per_s(Counter::compressed_evictions)));
  line("hit ratio", fmt::format("{} of {:.0f} uses/s of the shared cache",
                                numbers.hit_ratio ? percent_text(*numbers.hit_ratio) : "-", numbers.uses_s));
  line("misses",
       fmt::format("{}, read on demand {}, along with these {}, ahead {} (of which used {}), zeros {}",
                   per_s(Counter::shared_misses), per_s(Counter::fills), per_s(Counter::unit_fills),
                   per_s(Counter::readahead_fills), per_s(Counter::readahead_hits),
                   per_s(Counter::zero_fills)));
  line("miss took", telemetry::latency_text(numbers.took));
  line("waiting", fmt::format("{:.2f} threads for reads, {} waits for another's", numbers.waiting,
                              per_s(Counter::shared_waits)));
  line("evictions", fmt::format("{}, written {}", per_s(Counter::evictions), per_s(Counter::writebacks)));
  line("faults", fmt::format("{} missing, {} first stores, {} of code that was not recompiled",
                             per_s(Counter::missing_faults), per_s(Counter::protect_faults),
                             per_s(Counter::foreign_faults)));
  line("store", fmt::format("{} read, {} written, {} + {} requests", bytes_per_s(Counter::store_read_bytes),
                            bytes_per_s(Counter::store_write_bytes), per_s(Counter::store_reads),
                            per_s(Counter::store_writes)));
  line("disk " + device_name, device_text(numbers));
  for (size_t i = 0; i < hottest.size(); ++i) line(i == 0 ? "misses in" : "", hottest[i]);
  if (!run || run->processes.size() < 2) return text;
  const std::vector<std::string> processes = process_lines(*run);
  for (size_t i = 0; i < processes.size(); ++i) line(i == 0 ? "processes" : "", processes[i]);
  return text;
}

int watch_as_text(uint64_t process, const TopArguments& arguments) {
  auto page = LivePage::open(process);
  if (!page) return refuse(page.status().message());
  auto facts = facts_of(process, *page);
  if (!facts) return refuse(facts.status().message());
  if (arguments.trace) {
    follow_trace(process, *page, *facts, arguments);
    return kExitOk;
  }
  const Device device(facts->store_path);
  Areas areas(process);
  Processes processes;
  Look before = look_at(*page, device);
  (void)areas.look(*page, *facts);
  (void)processes.look();
  look_on(process, arguments, [&](uint64_t) {
    sleep_for(arguments.interval_s);
    const Look now = look_at(*page, device);
    const std::vector<Run> runs = processes.look();
    const double running_s = static_cast<double>(now.at_ns - std::min(now.at_ns, facts->started_ns)) / 1e9;
    fmt::print("{}\n", picture(*facts, device.name(), numbers_between(before, now, *facts), running_s,
                               hottest_lines(areas.look(*page, *facts)), run_of(runs, process)));
    before = now;
  });
  return kExitOk;
}

}  // namespace spw::tool::top
