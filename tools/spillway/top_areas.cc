#include "top_areas.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "abi/abi.h"
#include "base/units.h"

namespace spw::tool {

namespace {

using telemetry::Area;
using telemetry::LivePage;

constexpr size_t kLinesMax = 5;

std::string contents_of(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string name_of(const Area& area, const std::string& maps, CodeNames& names) {
  if (!area.name.empty()) return area.name;
  const std::string where =
      fmt::format("{} at {:#x}", format_size(area.bytes), SPW_MANAGED_BASE + area.begin);
  return area.site == 0 ? where
                        : where + ", allocated in " + text_of(names.of_call_at_address(area.site, maps));
}

}  // namespace

std::vector<std::string> hottest_areas(uint64_t process, const LivePage& page, LivePage::MissCounts& before,
                                       CodeNames& names) {
  const std::vector<LivePage::Missed> missed = page.missed_since(before);
  std::vector<Area> areas = page.areas();
  std::sort(areas.begin(), areas.end(), [](const Area& a, const Area& b) { return a.begin < b.begin; });
  std::vector<double> misses(areas.size() + 1);  // the last: in none
  double all = 0;
  for (const LivePage::Missed& miss : missed) {
    const uint64_t at = miss.block * page.header().block_bytes;
    const auto behind = std::upper_bound(areas.begin(), areas.end(), at,
                                         [](uint64_t byte, const Area& area) { return byte < area.begin; });
    const bool is_inside =
        behind != areas.begin() && at - std::prev(behind)->begin < std::prev(behind)->bytes;
    misses[is_inside ? static_cast<size_t>(behind - areas.begin()) - 1 : areas.size()] += miss.misses;
    all += miss.misses;
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < areas.size(); ++i)
    if (misses[i] > 0) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return misses[a] > misses[b]; });
  if (order.size() > kLinesMax) order.resize(kLinesMax);
  std::vector<std::string> lines;
  if (all == 0) return lines;
  const std::string maps = contents_of(fmt::format("/proc/{}/maps", process));
  for (const size_t i : order)
    lines.push_back(fmt::format("{:4.0f} %  {}", 100 * misses[i] / all, name_of(areas[i], maps, names)));
  if (misses.back() > 0) lines.push_back(fmt::format("{:4.0f} %  small objects", 100 * misses.back() / all));
  return lines;
}

}  // namespace spw::tool
