// `spillway check rbd:POOL`: the images that runs have made there to spill to. Those that nobody uses are removed.
#pragma once

#include <string>
#include <string_view>

namespace spw::tool {

inline constexpr std::string_view kPoolScheme = "rbd:";

// `name`: with the parameters by which runs name it. Returns the exit code.
int check_pool(const std::string& name);

}  // namespace spw::tool
