// Becoming the program of `spillway run`, once all that can be checked was.
#pragma once

#include "commands.h"
#include "watched_run.h"

namespace spw::tool {

// Returns only where it cannot be: the exit code, after one line.
int become(const RunArguments& arguments, const PreparedRun& prepared);

}  // namespace spw::tool
