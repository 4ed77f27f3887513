#include "top/trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "abi/abi.h"

namespace spw::tool::top {

using telemetry::LivePage;

std::vector<std::string> trace_lines(const LivePage& page, const PageFacts& facts,
                                     LivePage::TraceCounts& seen) {
  const bool is_first = seen.empty();  // what was before is of no interest
  const uint64_t seen_before = std::accumulate(seen.begin(), seen.end(), uint64_t{0});
  const std::vector<LivePage::Traced> traced = page.trace_since(seen);
  const uint64_t seen_now = std::accumulate(seen.begin(), seen.end(), uint64_t{0});
  std::vector<std::string> lines;
  if (!is_first && seen_now - seen_before > traced.size())
    lines.push_back(fmt::format("... {} more", seen_now - seen_before - traced.size()));
  for (const auto& [thread, entry] : traced) {
    const double at_s = static_cast<double>(entry.at_ns - std::min(entry.at_ns, facts.started_ns)) / 1e9;
    const std::string place = entry.block == telemetry::kTraceNoBlock
                                  ? ""
                                  : fmt::format("block {} at {:#x} ", entry.block,
                                                SPW_MANAGED_BASE + entry.block * facts.block_bytes);
    lines.push_back(fmt::format("{:.6f} s  thread {}  {}{}", at_s, thread, place, trace_text(entry)));
  }
  return lines;
}

}  // namespace spw::tool::top
