// `spillway top` as text, one look below the other: for pipes, scripts, and terminals that can do no more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands.h"
#include "top/numbers.h"
#include "top/processes.h"

namespace spw::tool::top {

// One look. `hottest`: hottest_lines(); `run`: nullptr, or the run that it is in.
std::string picture(const PageFacts& facts, const std::string& device_name, const Numbers& numbers,
                    double running_s, const std::vector<std::string>& hottest, const Run* run);

// Exit code. Until there were arguments.count looks, or the process ends.
int watch_as_text(uint64_t process, const TopArguments& arguments);

}  // namespace spw::tool::top
