// `spillway advise`: runs a program once, and says what more memory would be worth to it.
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "advice.h"
#include "commands.h"
#include "messages.h"
#include "report_file.h"

namespace spw::tool {

namespace {

bool write_file(const std::string& name, const std::string& text, std::ios::openmode mode = std::ios::trunc) {
  std::ofstream file(name, mode | std::ios::out);
  file << text;
  return file.flush().good();
}

pid_t g_child = 0;

// How a program ended.
struct Ended {
  int code = 0;    // as a shell says it
  int signal = 0;  // that ended it; 0: none
};

// Ctrl-C is the program's, and so is what is sent to this one.
Ended run_and_wait(const RunArguments& arguments) {
  const auto on_interrupt = std::signal(SIGINT, SIG_IGN), on_quit = std::signal(SIGQUIT, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
  g_child = ::fork();
  if (g_child < 0)
    return {
        refuse(fmt::format("{}: it cannot be started: {}", arguments.program.front(), std::strerror(errno))),
        0};
  if (g_child == 0) {
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGQUIT, on_quit);
    ::_exit(run_program(arguments));
  }
  for (const int signal : {SIGTERM, SIGHUP}) std::signal(signal, [](int sent) { ::kill(g_child, sent); });
  int status = 0;
  while (::waitpid(g_child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return {WEXITSTATUS(status), 0};
  return {128 + WTERMSIG(status), WTERMSIG(status)};
}

// A directory of its own, gone with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::error_code error;
    name_ = std::filesystem::temp_directory_path(error) / "spillway_advise.XXXXXX";
    is_there_ = !error && ::mkdtemp(name_.data()) != nullptr;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (is_there_) std::filesystem::remove_all(name_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  bool is_there() const { return is_there_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  bool is_there_ = false;
};

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
    if (!file.empty() && !write_file(file, "", std::ios::app))
      return refuse(fmt::format("{}: it cannot be written: {}", file, std::strerror(errno)));
  const TemporaryDirectory directory;
  if (!directory.is_there())
    return refuse(fmt::format("{}: no directory can be made there; set TMPDIR to one", directory.name()));
  RunArguments run = arguments.run;
  run.values["stats"] = directory.name() + "/report.%p";
  run.values["curve"] = "on";
  const Ended ended = run_and_wait(run);
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
  fmt::print(stderr, "{}", advice_text(advised));
  if (!arguments.json_file.empty() && !write_file(arguments.json_file, advice_json(advised)))
    return refuse(fmt::format("{}: it cannot be written", arguments.json_file));
  if (!arguments.svg_file.empty() && !write_file(arguments.svg_file, advice_svg(advised)))
    return refuse(fmt::format("{}: it cannot be written", arguments.svg_file));
  return code;
}

}  // namespace spw::tool
