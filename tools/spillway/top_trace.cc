#include "top_trace.h"

#include <fmt/core.h>

#include <numeric>

#include "abi/abi.h"

namespace spw::tool {

using telemetry::LivePage;

std::string trace_lines(const LivePage& page, LivePage::TraceCounts& seen) {
  const telemetry::LiveHeader& header = page.header();
  const bool is_first = seen.empty();  // what was before is of no interest
  const uint64_t seen_before = std::accumulate(seen.begin(), seen.end(), uint64_t{0});
  const std::vector<LivePage::Traced> traced = page.trace_since(seen);
  const uint64_t lost = std::accumulate(seen.begin(), seen.end(), uint64_t{0}) - seen_before - traced.size();
  std::string text;
  if (!is_first && lost > 0) text += fmt::format("... {} more\n", lost);
  for (const auto& [thread, entry] : traced) {
    const double at_s = static_cast<double>(entry.at_ns - header.started_ns) / 1e9;
    const std::string place = entry.block == telemetry::kTraceNoBlock
                                  ? ""
                                  : fmt::format("block {} at {:#x} ", entry.block,
                                                SPW_MANAGED_BASE + entry.block * header.block_bytes);
    text += fmt::format("{:.6f} s  thread {}  {}{}\n", at_s, thread, place, trace_text(entry));
  }
  return text;
}

}  // namespace spw::tool
