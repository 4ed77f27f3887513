// How the tool speaks: one line on standard error, and exit code 2
// for whatever the user can mend by calling it differently.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string_view>

namespace spw::tool {

inline constexpr int kExitOk = 0;
inline constexpr int kExitMissing = 1;  // doctor: something essential is missing
inline constexpr int kExitUsage = 2;

inline int refuse(std::string_view line) {
  fmt::print(stderr, "spillway: {}\n", line);
  return kExitUsage;
}

inline void warn(std::string_view line) { fmt::print(stderr, "spillway: warning: {}\n", line); }

}  // namespace spw::tool
