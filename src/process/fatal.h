// How the runtime ends a program that cannot go on: one line on standard error, then the exit code. The only place
// below the command line that ends one for what the outside world did (for a bug: check.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_status.h"
#include "base/status.h"

namespace spw::process {

using spw::kExitFailure;
using spw::kExitUsage;

// Writes "spillway: <line>\n" and ends the process at once (_exit), since the program's own state cannot be trusted to
// unwind. Allocates nothing; async-signal-safe.
[[noreturn]] void fatal(int exit_code, std::string_view line);
// "spillway: <line>\n".
void tell(std::string_view line);
// "spillway: warning: <line>\n".
void warn(std::string_view line);
// The first kWarningsKept of them, each cut at kWarningBytesMax bytes: reports have them, too.
inline constexpr uint32_t kWarningsKept = 16, kWarningBytesMax = 300;
std::vector<std::string> warnings();

}  // namespace spw::process
