// What has happened to a program's blocks, for `spillway top --trace`.
#pragma once

#include <string>

#include "telemetry/live_page.h"

namespace spw::tool {

// A line for each event that was not seen yet, and one that says how many came too fast to be kept.
std::string trace_lines(const telemetry::LivePage& page, telemetry::LivePage::TraceCounts& seen);

}  // namespace spw::tool
