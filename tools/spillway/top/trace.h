// What has happened to a program's blocks, for `spillway top --trace`.
#pragma once

#include <string>
#include <vector>

#include "telemetry/live_page.h"
#include "top/numbers.h"

namespace spw::tool::top {

// A line for each event that was not seen yet, and one that says how many came too fast to be kept.
std::vector<std::string> trace_lines(const telemetry::LivePage& page, const PageFacts& facts,
                                     telemetry::LivePage::TraceCounts& seen);

}  // namespace spw::tool::top
