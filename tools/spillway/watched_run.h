// `spillway run --report FILE.html` and `--metrics ADDRESS`: this process stays, looks on while the program runs
// (recorder.h), and says at the end how it went.
#pragma once

#include <string>

#include "commands.h"
#include "process/options.h"

namespace spw::tool {

// What has been made ready for a program that may run (run.cc).
struct PreparedRun {
  process::Options options;
  std::string path;  // of the program
};

// "" or one line: what of these arguments does not go together with a report, or with metrics.
std::string watch_refusal(const RunArguments& arguments, const process::Options& options);
int run_watched(const RunArguments& arguments, const PreparedRun& prepared);

}  // namespace spw::tool
