// A run as the page of --report is given it (report/README.md).
//
// Threads: pure functions of their arguments, but for what they ask of the machine.
#pragma once

#include <string>
#include <vector>

#include "commands.h"
#include "process/options.h"
#include "recorder.h"
#include "report_file.h"
#include "supervise.h"
#include "telemetry/closing_line.h"

namespace spw::tool {

struct WatchedRun {
  const RunArguments& arguments;
  const process::Options& options;
  Recorder& recorder;
  std::vector<ReportFile> reports;  // of its processes that left one
  Ended ended;
  std::string started;  // UTC
  double wall_seconds = 0;
  process::TreeCap::Account account;  // of the ledger
};

// What the processes did, by whichever of their reports, their pages and the ledger knows more.
telemetry::RunSummary summary_of(const WatchedRun& run);
std::string run_data_json(const WatchedRun& run);
std::string utc_now();

}  // namespace spw::tool
