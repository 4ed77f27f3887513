// `spillway advise`: runs a program once, and says what more memory would be worth to it.
#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "advice.h"
#include "commands.h"
#include "messages.h"
#include "report_file.h"
#include "supervise.h"

namespace spw::tool {

namespace {

// Of all that the program and those it started have left, the one with the most reads.
std::optional<ReportFile> report_of_most_reads(const std::string& directory) {
  std::optional<ReportFile> found;
  const auto reads = [](const ReportFile& report) {
    return report.facts.curve.empty() ? 0 : report.facts.curve.front().reads;
  };
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    auto report = read_report(entry.path());
    if (!report)
      warn(report.status().message());
    else if (!found || reads(*report) > reads(*found))
      found = std::move(*report);
  }
  return found;
}

// Says that it goes on, at times that double: the terminal is the program's.
class Waits {
 public:
  explicit Waits(std::string program) : program_(std::move(program)) {}
  // Seconds until it is to be called again.
  double look() {
    if (has_begun_)
      fmt::print(stderr, "spillway: {} has been watched for {:.0f} s; the advice comes when it ends\n",
                 program_, waited_s_);
    has_begun_ = true;
    const double next_s = waited_s_ == 0 ? kFirstLineS : waited_s_;
    waited_s_ += next_s;
    return next_s;
  }

 private:
  static constexpr double kFirstLineS = 10;
  const std::string program_;
  bool has_begun_ = false;
  double waited_s_ = 0;
};

}  // namespace

int advise(const AdviseArguments& arguments) {
  if (arguments.run.program.empty())
    return refuse("no program is named; such as: spillway advise --memory 1G -- ./prog");
  for (const char* taken : {"stats", "curve", "trace"})
    if (arguments.run.values.contains(taken))
      return refuse(fmt::format("--{}: spillway advise sets it itself", taken));
  if (const auto memory = arguments.run.values.find("memory");
      memory != arguments.run.values.end() && memory->second == "auto")
    return refuse("--memory=auto: the advice is for a cap that stays; name a size");
  for (const std::string& file : {arguments.json_file, arguments.svg_file})
    if (!file.empty() && !can_write(file))
      return refuse(fmt::format("{}: it cannot be written: {}", file, std::strerror(errno)));
  const TemporaryDirectory directory("spillway_advise");
  if (!directory.is_there())
    return refuse(fmt::format("{}: no directory can be made there; set TMPDIR to one", directory.name()));
  RunArguments run = arguments.run;
  run.values["stats"] = directory.name() + "/report.%p";
  run.values["curve"] = "on";
  run.values["quiet"] = "on";
  Waits waits(run.program.front());
  const Ended ended = run_and_wait([&] { return run_program(run); }, [&] { return waits.look(); });
  const int code = ended.code;
  const auto report = report_of_most_reads(directory.name());
  if (!report && code == kExitUsage) return code;  // it was said why
  if (!report) {
    const std::string how = ended.signal != 0 ? fmt::format("was ended by signal {}", ended.signal)
                                              : fmt::format("ended with code {}", code);
    return refuse(
        fmt::format("{}: it {} and left no report (no managed memory was used, or it did not end by exit()), "
                    "so there is nothing to advise",
                    run.program.front(), how));
  }
  if (report->facts.curve.empty())
    return refuse(fmt::format("{}: it runs with another version of Spillway, whose report has no curve",
                              run.program.front()));
  if (code != 0) warn(fmt::format("{} ended with code {}", run.program.front(), code));
  const Advised advised{
      report->facts,
      static_cast<double>(telemetry::total(report->totals, telemetry::Counter::fill_wait_ns)) / 1e9};
  CodeNames names;
  fmt::print(stderr, "{}", advice_text(advised, names));
  if (!arguments.json_file.empty() && !write_file(arguments.json_file, advice_json(advised, names)))
    return refuse(fmt::format("{}: it cannot be written", arguments.json_file));
  if (!arguments.svg_file.empty() && !write_file(arguments.svg_file, advice_svg(advised)))
    return refuse(fmt::format("{}: it cannot be written", arguments.svg_file));
  return code;
}

}  // namespace spw::tool
