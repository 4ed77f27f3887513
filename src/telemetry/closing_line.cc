#include "telemetry/closing_line.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/units.h"
#include "platform/machine.h"

namespace spw::telemetry {

namespace {

constexpr double kNsPerSecond = 1e9;
constexpr uint64_t kOthersShare = 10;
constexpr uint64_t kMachineLeft = 10;  // a share
constexpr double kWorthSaying = 0.1;   // of the time
constexpr double kNearlyAll = 0.95;    // of what the most memory would save
// Fewer blocks that came back say nothing of the others.
constexpr uint64_t kReadsMin = 20000;
constexpr uint64_t kCountInThousands = 10000, kCountInMillions = 1000000;

std::string count_text(uint64_t count) {
  char text[32];
  if (count < kCountInThousands)
    std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(count));
  else if (count < kCountInMillions)
    std::snprintf(text, sizeof text, "%.0f K", static_cast<double>(count) / 1e3);
  else
    std::snprintf(text, sizeof text, "%.1f M", static_cast<double>(count) / 1e6);
  return text;
}

std::string percent(double share) { return std::to_string(std::lround(share * 100)) + " %"; }

// "4.0 of 4.0 GiB": both in the unit of the second.
std::string of_cap(uint64_t peak_bytes, uint64_t cap_bytes) {
  const std::string cap = format_size(cap_bytes);
  const std::string unit = cap.substr(cap.find(' ') + 1);
  const std::string peak = format_size(peak_bytes);
  return (peak.ends_with(" " + unit) ? peak.substr(0, peak.find(' ')) : peak) + " of " + cap;
}

// As --memory takes it, rounded up to what people would write: "6G", "700M".
std::string size_to_give(uint64_t bytes) {
  const uint64_t mib = (bytes + kMiB - 1) / kMiB;
  if (bytes > 10 * kGiB) return std::to_string((bytes + kGiB - 1) / kGiB) + "G";
  for (const uint64_t step : {uint64_t{100}, uint64_t{10}})
    if (mib > 10 * step) return std::to_string((mib + step - 1) / step * step) + "M";
  return std::to_string(mib) + "M";
}

}  // namespace

RunTotals& RunTotals::operator+=(const RunTotals& more) {
  spilled_bytes += more.spilled_bytes;
  read_bytes += more.read_bytes;
  misses += more.misses;
  waited_ns += more.waited_ns;
  processor_ns += more.processor_ns;
  return *this;
}

RunTotals& RunTotals::raise_to(const RunTotals& other) {
  spilled_bytes = std::max(spilled_bytes, other.spilled_bytes);
  read_bytes = std::max(read_bytes, other.read_bytes);
  misses = std::max(misses, other.misses);
  waited_ns = std::max(waited_ns, other.waited_ns);
  processor_ns = std::max(processor_ns, other.processor_ns);
  return *this;
}

RunTotals run_totals(const Totals& totals, uint64_t block_bytes, uint64_t processor_ns) {
  return {total(totals, Counter::spilled_blocks) * block_bytes, total(totals, Counter::store_read_bytes),
          total(totals, Counter::fills), total(totals, Counter::fill_wait_ns), processor_ns};
}

Advice advice_from(const std::vector<CurvePoint>& curve, double waiting_share, uint64_t memory_bytes_most) {
  if (curve.size() < 2 || curve.front().reads < kReadsMin) return {};
  const auto all = static_cast<double>(curve.front().reads);
  const auto saves = [&](const CurvePoint& point) {
    return waiting_share * (1 - static_cast<double>(point.reads) / all);
  };
  double most = 0;
  for (const CurvePoint& point : curve)
    if (point.memory_bytes <= memory_bytes_most) most = std::max(most, saves(point));
  if (most < kWorthSaying) return {};
  for (const CurvePoint& point : curve)
    if (saves(point) >= kNearlyAll * most) return {point.memory_bytes, saves(point)};
  return {};
}

bool is_nearly_all(uint64_t own_read_bytes, uint64_t read_bytes) {
  return own_read_bytes >= read_bytes - read_bytes / kOthersShare;
}

double waiting_share(const RunTotals& totals, double wall_seconds) {
  const double waited = static_cast<double>(totals.waited_ns) / kNsPerSecond;
  const double all = std::max(static_cast<double>(totals.processor_ns) / kNsPerSecond + waited, wall_seconds);
  return all > 0 ? waited / all : 0;
}

bool has_spilled(const RunTotals& totals) { return totals.spilled_bytes > 0; }

uint64_t machine_bytes() {
  const auto total = platform::memory_total_bytes();
  if (!total) return 0;
  const auto swap = platform::swap_total_bytes();
  const uint64_t machine = *total + (swap ? *swap : 0);
  const auto group = platform::cgroup_memory_limit_bytes();
  return group ? std::min(machine, *group) : machine;
}

uint64_t memory_to_advise(uint64_t machine_bytes) { return machine_bytes - machine_bytes / kMachineLeft; }

std::string closing_line(const RunSummary& run) {
  if (!has_spilled(run.totals) && run.totals.read_bytes == 0) return "nothing had to leave memory";
  std::string line =
      "spilled " + format_size(run.totals.spilled_bytes) + ", read " + format_size(run.totals.read_bytes);
  if (run.peak_bytes != 0) line += "; peak " + of_cap(run.peak_bytes, run.cap_bytes);
  line += "; " + count_text(run.totals.misses) + " misses, " +
          percent(waiting_share(run.totals, run.wall_seconds)) + " of the time waiting";
  if (run.advice.memory_bytes != 0)
    line += "; try --memory " + size_to_give(run.advice.memory_bytes) + ": -" + percent(run.advice.saves);
  if (run.machine_bytes != 0 && run.needs_bytes > run.machine_bytes)
    line += "; without Spillway it would have needed about " + format_size(run.needs_bytes) + ", and " +
            format_size(run.machine_bytes) + " is all there is";
  return line;
}

}  // namespace spw::telemetry
