#include "watched_run.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>

#include "messages.h"
#include "metrics_server.h"
#include "metrics_text.h"
#include "process/tree_cap.h"
#include "recorder.h"
#include "report_page.h"
#include "run.h"
#include "run_data.h"
#include "supervise.h"

namespace spw::tool {

namespace {

std::vector<ReportFile> reports_in(const std::string& directory) {
  std::vector<ReportFile> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (auto report = read_report(entry.path())) all.push_back(std::move(*report));
  return all;
}

}  // namespace

std::string watch_refusal(const RunArguments& arguments, const process::Options& options) {
  if (arguments.report_file.empty()) return "";
  if (options.stats.kind != process::StatsKind::kOff)
    return "--stats: not together with --report, which shows all of it; leave one of them out";
  if (!options.trace_file.empty()) return "--trace: not together with --report; leave one of them out";
  std::error_code error;
  if (std::filesystem::is_directory(arguments.report_file, error))
    return fmt::format("--report={}: it is a directory; name a file", arguments.report_file);
  if (!can_write(arguments.report_file))
    return fmt::format("--report={}: it cannot be written: {}", arguments.report_file, std::strerror(errno));
  return "";
}

int run_watched(const RunArguments& arguments, const PreparedRun& prepared) {
  const TemporaryDirectory directory("spillway_report");
  if (!directory.is_there())
    return refuse(fmt::format("{}: no directory can be made there; set TMPDIR to one", directory.name()));
  if (!arguments.report_file.empty()) {
    ::setenv(process::environment_variable("stats").c_str(), (directory.name() + "/report.%p").c_str(), 1);
    ::setenv(process::environment_variable("curve").c_str(), "on", 1);
  }
  auto tree = process::TreeCap::look_on();
  const char* run = std::getenv(process::kTreeVariable);
  Recorder recorder(fmt::format("{}={}", process::kTreeVariable, run ? run : ""), tree ? &*tree : nullptr,
                    arguments.report_file.empty() ? Recorder::Detail::kCounters : Recorder::Detail::kPlaces);
  const std::string started = utc_now();
  std::mutex looks;
  std::unique_ptr<MetricsServer> server;
  if (!arguments.metrics_address.empty()) {
    auto serves = MetricsServer::start(arguments.metrics_address, [&] {
      const std::lock_guard lock(looks);
      return metrics_text(recorder.now(prepared.options.memory_bytes));
    });
    if (!serves) return refuse(serves.status().message());
    server = std::move(*serves);
    if (server->where() != fmt::format("http://127.0.0.1:{}/metrics", arguments.metrics_address))
      fmt::print(stderr, "spillway: metrics are at {}\n", server->where());
  }
  const Ended ended = run_and_wait([&] { return become(arguments, prepared); },
                                   [&] {
                                     const std::lock_guard lock(looks);
                                     return recorder.look();
                                   });
  server.reset();
  WatchedRun watched{arguments, prepared.options, recorder,           reports_in(directory.name()),
                     ended,     started,          recorder.seconds(), {}};
  if (tree) watched.account = tree->account();
  const telemetry::RunSummary summary = summary_of(watched);
  if (prepared.options.quiet == process::Switch::kOff && telemetry::has_spilled(summary.totals))
    fmt::print(stderr, "spillway: {}\n", telemetry::closing_line(summary));
  if (!arguments.report_file.empty() &&
      !write_file(arguments.report_file, report_page(run_data_json(watched))))
    warn(fmt::format("{}: the report cannot be written: {}", arguments.report_file, std::strerror(errno)));
  return end_as(ended);
}

}  // namespace spw::tool
