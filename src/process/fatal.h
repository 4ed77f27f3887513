// How the runtime ends a program that cannot go on: one line on standard error, then the exit code. The only place
// below the command line that ends one for what the outside world did (for a bug: check.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace spw::process {

// A bad option, store or cap: the user can mend it and start again.
inline constexpr int kExitUsage = 2;
// The machine failed underneath: a lasting I/O error, a full disk
// that stayed full, a forked child that used managed memory.
inline constexpr int kExitFailure = 74;

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
