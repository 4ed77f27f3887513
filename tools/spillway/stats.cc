#include <fmt/core.h>

#include "commands.h"
#include "messages.h"
#include "report_file.h"

namespace spw::tool {

int show_stats(const std::string& file) {
  auto report = read_report(file);
  if (!report) return refuse(report.status().message());
  fmt::print("{}", telemetry::report_text(report->facts, report->totals));
  return kExitOk;
}

}  // namespace spw::tool
