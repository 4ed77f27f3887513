// Which pieces of managed memory a running program misses most, for
// `spillway top`: allocations, by who made them, and mapped files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "code_names.h"
#include "telemetry/live_page.h"

namespace spw::tool {

// A line for each of the hottest, and one for what lies in none: small objects, and what is gone meanwhile. Empty:
// nothing was missed. `before`: of the last look; becomes this one's.
std::vector<std::string> hottest_areas(uint64_t process, const telemetry::LivePage& page,
                                       telemetry::LivePage::MissCounts& before, CodeNames& names);

}  // namespace spw::tool
