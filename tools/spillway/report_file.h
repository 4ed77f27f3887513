// Reading a report that --stats=FILE wrote.
#pragma once

#include <string>

#include "base/status.h"
#include "telemetry/report.h"

namespace spw::tool {

struct ReportFile {
  telemetry::Facts facts;
  telemetry::Totals totals{};
};

// Errors: one line that says what is wrong with the file.
Result<ReportFile> read_report(const std::string& file);

}  // namespace spw::tool
