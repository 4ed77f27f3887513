#include "run_data.h"

#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "advice.h"
#include "base/units.h"
#include "platform/machine.h"

namespace spw::tool {

namespace {

using nlohmann::json;
using telemetry::Counter;

constexpr size_t kAllocationsMax = 20, kFunctionsMax = 30, kPlacesNamed = 200;
constexpr double kNearBest = 0.05;  // within so much of the best time

const ReportFile* main_report(const WatchedRun& run) {
  const ReportFile* most = nullptr;
  const auto reads = [](const ReportFile& report) {
    return report.facts.curve.empty() ? 0 : report.facts.curve.front().reads;
  };
  for (const ReportFile& report : run.reports)
    if (most == nullptr || reads(report) > reads(*most)) most = &report;
  return most;
}

// A process's own report, which it wrote at its end, knows more than the last look.
struct OneProcess {
  std::string program;
  uint64_t peak_bytes = 0;
  double seconds = 0, processor_seconds = 0;
  uint64_t block_bytes = 0;
  telemetry::Totals totals{};
};
std::map<uint64_t, OneProcess> processes_of(const WatchedRun& run) {
  std::map<uint64_t, OneProcess> all;
  for (const SeenProcess& seen : run.recorder.processes())
    all[seen.process] = {seen.program, seen.peak_bytes, seen.seconds, 0, seen.block_bytes, seen.totals};
  for (const ReportFile& report : run.reports)
    all[report.facts.process] = {report.facts.program,      report.facts.resident_peak_bytes,
                                 report.facts.wall_seconds, report.facts.processor_seconds,
                                 report.facts.block_bytes,  report.totals};
  return all;
}

json samples_json(const std::vector<Sample>& samples) {
  json columns = json::object();
  const auto column = [&](const char* name, auto member) {
    json& values = columns[name] = json::array();
    for (const Sample& sample : samples) values.push_back(sample.*member);
  };
  column("seconds", &Sample::seconds);
  column("memory_bytes", &Sample::memory_bytes);
  column("misses_per_s", &Sample::misses_per_s);
  column("hits_per_s", &Sample::hits_per_s);
  column("read_bytes_per_s", &Sample::read_bytes_per_s);
  column("write_bytes_per_s", &Sample::write_bytes_per_s);
  column("waiting_threads", &Sample::waiting_threads);
  column("running_threads", &Sample::running_threads);
  column("processes", &Sample::processes);
  return columns;
}

json latencies_json(const std::vector<SeenProcess>& processes) {
  telemetry::Latencies all;
  for (const SeenProcess& seen : processes) {
    for (size_t i = 0; i < telemetry::kClasses; ++i) all.counts[i] += seen.latencies.counts[i];
    all.worst_ns = std::max(all.worst_ns, seen.latencies.worst_ns);
  }
  const telemetry::LatencySummary summary = telemetry::summary_of(all);
  if (summary.count == 0) return nullptr;
  json classes = json::array();
  for (size_t i = 0; i < telemetry::kClasses; ++i)
    if (all.counts[i] > 0)
      classes.push_back({{"below_ns", telemetry::latency_class_end_ns(i)}, {"count", all.counts[i]}});
  return {{"count", summary.count},     {"p50_ns", summary.p50_ns},     {"p99_ns", summary.p99_ns},
          {"p999_ns", summary.p999_ns}, {"worst_ns", summary.worst_ns}, {"classes", classes}};
}

json curve_json(const ReportFile* report) {
  if (report == nullptr || report->facts.curve.size() < 2) return nullptr;
  const Advised advised{report->facts,
                        static_cast<double>(telemetry::total(report->totals, Counter::fill_wait_ns)) / 1e9};
  json points = json::array();
  for (const telemetry::CurvePoint& point : report->facts.curve)
    points.push_back({{"memory_bytes", point.memory_bytes},
                      {"reads", point.reads},
                      {"seconds", advised.seconds_at(point.memory_bytes)}});
  return {{"here_bytes", report->facts.memory_cap_bytes},
          {"enough_bytes", advised.memory_within(kNearBest)},
          {"points", points}};
}

json allocations_json(const std::vector<Missed>& missed) {
  double all = 0;
  for (const Missed& each : missed) all += each.misses;
  json rows = json::array();
  for (const Missed& each : missed) {
    if (rows.size() == kAllocationsMax) break;
    const bool is_small = each.name.empty();
    rows.push_back({{"name", is_small ? "small objects" : each.name},
                    {"bytes", each.bytes},
                    {"misses", static_cast<uint64_t>(each.misses)},
                    {"share", each.misses / all},
                    {"kind", is_small       ? "small"
                             : each.is_file ? "file"
                                            : "allocation"}});
  }
  return rows;
}

json functions_json(const std::vector<MissedAt>& missed) {
  double all = 0;
  for (const MissedAt& each : missed) all += each.misses;
  json rows = json::array();
  for (const MissedAt& each : missed) {
    if (rows.size() == kFunctionsMax) break;
    rows.push_back({{"name", each.function},
                    {"source", each.source},
                    {"library", each.library},
                    {"misses", static_cast<uint64_t>(each.misses)},
                    {"share", each.misses / all}});
  }
  return rows;
}

json chosen_json(const WatchedRun& run, const ReportFile* report) {
  json rows = json::array();
  const auto row = [&](const char* what, const std::string& value, const std::string& why) {
    if (!value.empty()) rows.push_back({{"what", what}, {"value", value}, {"why", why}});
  };
  const auto given = [&](const char* name) {
    if (run.arguments.values.contains(name)) return fmt::format("--{}", name);
    const std::string variable = process::environment_variable(name);
    return ::getenv(variable.c_str()) ? variable : std::string("by default");
  };
  const std::string memory_by = given("memory");
  row("memory", format_size(run.options.memory_bytes),
      memory_by == "by default" ? "three quarters of what was available" : memory_by);
  if (report == nullptr) return rows;
  const telemetry::Facts& facts = report->facts;
  const std::string engine_by = given("engine");
  row("engine", facts.engine,
      engine_by == "by default" ? "what the program was compiled for, or was not" : engine_by);
  row("store", facts.store, given("store"));
  row("block", format_size(facts.block_bytes), given("block"));
  row("policy", run.options.policy, given("policy"));
  row("faults", facts.faults_by, given("faults"));
  row("faults of system calls", facts.system_call_faults, "");
  row("files that are only read", facts.mapped_reads, given("mapped-reads"));
  row("managed memory", facts.watched ? "went through the cache" : "fitted, and was left to the kernel", "");
  for (const telemetry::ForeignCode& code : facts.foreign)
    row("not recompiled", code.function + " of " + code.library, fmt::format("{} faults", code.faults));
  return rows;
}

json processes_json(const std::map<uint64_t, OneProcess>& processes) {
  json rows = json::array();
  for (const auto& [process, one] : processes)
    rows.push_back({{"process", process},
                    {"program", one.program},
                    {"peak_bytes", one.peak_bytes},
                    {"misses", telemetry::total(one.totals, Counter::fills)},
                    {"seconds", one.seconds}});
  return rows;
}

// What its processes wrote about themselves, each line once.
json notices_json(const WatchedRun& run) {
  std::set<std::string> lines;
  for (const ReportFile& report : run.reports)
    lines.insert(report.facts.warnings.begin(), report.facts.warnings.end());
  return lines;
}

// Options as they were given, but for those of the report itself.
json options_json(const RunArguments& arguments) {
  json words = json::array();
  for (const auto& [name, value] : arguments.values)
    if (name != "stats" && name != "curve" && name != "memory") {
      words.push_back("--" + name);
      words.push_back(value);
    }
  return words;
}

json machine_json() {
  utsname system{};
  ::uname(&system);
  const auto memory = platform::memory_total_bytes();
  return {{"name", system.nodename},
          {"kernel", system.release},
          {"processors", platform::cpu_count()},
          {"memory_bytes", memory ? *memory : 0}};
}

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

telemetry::RunSummary summary_of(const WatchedRun& run) {
  telemetry::RunSummary summary;
  telemetry::RunTotals sum;
  uint64_t peak_bytes = 0;
  for (const auto& [process, one] : processes_of(run)) {
    sum += telemetry::run_totals(one.totals, one.block_bytes,
                                 static_cast<uint64_t>(one.processor_seconds * 1e9));
    peak_bytes = std::max(peak_bytes, one.peak_bytes);
  }
  // Of processes that nobody looked at in their short lives the ledger alone knows.
  summary.totals = sum.raise_to(run.account.totals);
  summary.wall_seconds = run.wall_seconds;
  summary.peak_bytes = run.account.resident_bytes != 0 ? run.account.resident_bytes : peak_bytes;
  summary.cap_bytes = run.options.memory_bytes;
  summary.needs_bytes = run.account.needs_bytes;
  summary.machine_bytes = telemetry::machine_bytes();
  const ReportFile* report = main_report(run);
  if (report == nullptr || run.options.memory_is_auto) return summary;
  const uint64_t own = telemetry::total(report->totals, Counter::store_read_bytes);
  if (telemetry::is_nearly_all(own, summary.totals.read_bytes))
    summary.advice = telemetry::advice_from(report->facts.curve,
                                            telemetry::waiting_share(summary.totals, run.wall_seconds),
                                            telemetry::memory_to_advise(summary.machine_bytes));
  return summary;
}

std::string run_data_json(const WatchedRun& run) {
  const ReportFile* report = main_report(run);
  const telemetry::RunSummary summary = summary_of(run);
  const auto processes = processes_of(run);
  const bool would_not_fit = summary.machine_bytes != 0 && summary.needs_bytes > summary.machine_bytes;
  json data{{"schema", 1},
            {"version", SPW_VERSION},
            {"command", run.arguments.program},
            {"options", options_json(run.arguments)},
            {"started", run.started},
            {"wall_seconds", run.wall_seconds},
            {"ended", {{"code", run.ended.code}, {"signal", run.ended.signal}}},
            {"machine", machine_json()},
            {"summary",
             {{"cap_bytes", summary.cap_bytes},
              {"peak_bytes", summary.peak_bytes},
              {"spilled_bytes", summary.totals.spilled_bytes},
              {"read_bytes", summary.totals.read_bytes},
              {"misses", summary.totals.misses},
              {"waiting_share", telemetry::waiting_share(summary.totals, run.wall_seconds)},
              {"closing_line", telemetry::closing_line(summary)},
              {"without",
               would_not_fit
                   ? json(fmt::format("Without Spillway it would have needed about {}; this machine has {}.",
                                      format_size(summary.needs_bytes), format_size(summary.machine_bytes)))
                   : json(nullptr)}}},
            {"samples", samples_json(run.recorder.samples())},
            {"latencies", latencies_json(run.recorder.processes())},
            {"curve", curve_json(report)},
            {"allocations", allocations_json(run.recorder.allocations())},
            {"functions", functions_json(run.recorder.functions(kPlacesNamed))},
            {"chosen", chosen_json(run, report)},
            {"processes", processes_json(processes)},
            {"notices", notices_json(run)}};
  // Names of programs and files may be of any bytes.
  return data.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace spw::tool
