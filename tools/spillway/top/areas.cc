#include "top/areas.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "abi/abi.h"
#include "base/units.h"
#include "contents.h"
#include "top/text.h"

namespace spw::tool::top {

namespace {

using telemetry::Area;
using telemetry::LivePage;

constexpr size_t kHottestMax = 5;

}  // namespace

const std::string& Areas::maker_at(uint64_t site) {
  if (const auto known = makers_.find(site); known != makers_.end()) return known->second;
  if (makers_.size() >= kKnownMax) makers_.clear();
  const std::string maps = contents_of(fmt::format("/proc/{}/maps", process_));
  return makers_[site] = printable(text_of(names_.of_call_at_address(site, maps)), Charset::kUtf8);
}

void Areas::name(AreaUse& use, const Area& area) {
  if (!area.name.empty()) {
    use.name = use.maker = printable(area.name, Charset::kUtf8);
    return;
  }
  use.name = fmt::format("{} at {:#x}", format_size(area.bytes), SPW_MANAGED_BASE + area.begin);
  if (area.site == 0) return;
  use.maker = maker_at(area.site);
  use.name += ", allocated in " + use.maker;
}

std::vector<AreaUse> Areas::look(const LivePage& page, const PageFacts& facts) {
  if (is_first_) before_ = page.miss_counts();
  is_first_ = false;
  const std::vector<LivePage::Missed> missed = page.missed_since(before_);
  std::vector<Area> areas = page.areas();
  std::sort(areas.begin(), areas.end(), [](const Area& a, const Area& b) { return a.begin < b.begin; });
  std::vector<AreaUse> uses(areas.size() + 1);  // the last: in none
  double all = 0;
  for (const LivePage::Missed& miss : missed) {
    const uint64_t at = miss.block * facts.block_bytes;
    const auto behind = std::upper_bound(areas.begin(), areas.end(), at,
                                         [](uint64_t byte, const Area& area) { return byte < area.begin; });
    const bool is_inside =
        behind != areas.begin() && at - std::prev(behind)->begin < std::prev(behind)->bytes;
    uses[is_inside ? static_cast<size_t>(behind - areas.begin()) - 1 : areas.size()].misses += miss.misses;
    all += miss.misses;
  }
  for (size_t i = 0; i < areas.size(); ++i) {
    uses[i].begin = SPW_MANAGED_BASE + areas[i].begin;
    uses[i].bytes = areas[i].bytes;
    name(uses[i], areas[i]);
  }
  uses.back().name = uses.back().maker = "small objects";
  if (uses.back().misses == 0) uses.pop_back();
  for (AreaUse& use : uses) use.share = all > 0 ? use.misses / all : 0;
  std::sort(uses.begin(), uses.end(), [](const AreaUse& a, const AreaUse& b) {
    return std::tuple(-a.misses, ~a.bytes, a.begin) < std::tuple(-b.misses, ~b.bytes, b.begin);
  });
  return uses;
}

std::vector<std::string> hottest_lines(const std::vector<AreaUse>& uses) {
  std::vector<std::string> lines;
  std::string others;
  for (const AreaUse& use : uses) {
    if (use.misses == 0) continue;
    const std::string line = fmt::format("{:4.0f} %  {}", 100 * use.share, use.name);
    if (use.bytes == 0)
      others = line;
    else if (lines.size() < kHottestMax)
      lines.push_back(line);
  }
  if (!others.empty()) lines.push_back(others);
  return lines;
}

}  // namespace spw::tool::top
