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
#include <nlohmann/json.hpp>

#include "advice.h"
#include "commands.h"
#include "messages.h"
#include "report_file.h"

namespace spw::tool {

namespace {

bool write_file(const std::string& name, const std::string& text) {
  std::ofstream file(name);
  file << text;
  return file.flush().good();
}

// The exit code, as a shell says it. Ctrl-C is the program's.
int run_and_wait(const RunArguments& arguments) {
  const pid_t child = ::fork();
  if (child < 0) return refuse(fmt::format("{}: it cannot be started: {}", arguments.program.front(), std::strerror(errno)));
  if (child == 0) ::_exit(run_program(arguments));
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int advise(const AdviseArguments& arguments) {
  if (arguments.run.program.empty()) return refuse("no program is named; such as: spillway advise --memory 1G -- ./prog");
  for (const char* taken : {"stats", "curve", "trace"})
    if (arguments.run.values.contains(taken)) return refuse(fmt::format("--{}: spillway advise sets it itself", taken));
  for (const std::string& file : {arguments.json_file, arguments.svg_file})
    if (!file.empty() && !write_file(file, "")) return refuse(fmt::format("{}: it cannot be written: {}", file, std::strerror(errno)));
  char directory[] = "/tmp/spillway_advise.XXXXXX";
  if (::mkdtemp(directory) == nullptr) return refuse(fmt::format("{}: no directory can be made there: {}", directory, std::strerror(errno)));
  const std::string report_file = std::string(directory) + "/report";
  RunArguments run = arguments.run;
  run.values["stats"] = report_file;
  run.values["curve"] = "on";
  const int code = run_and_wait(run);
  auto report = read_report(report_file);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  if (!report) {
    if (code != 0) return code;
    return refuse(fmt::format("{}: it has used no managed memory, or did not end by exit(), so there is nothing to advise",
                              run.program.front()));
  }
  if (report->facts.curve.empty())
    return refuse(fmt::format("{}: it runs with another version of Spillway, whose report has no curve", run.program.front()));
  if (code != 0) warn(fmt::format("{} ended with code {}", run.program.front(), code));
  const Advised advised{report->facts, static_cast<double>(telemetry::total(report->totals, telemetry::Counter::fill_wait_ns)) / 1e9};
  fmt::print(stderr, "{}", advice_text(advised));
  if (!arguments.json_file.empty() && !write_file(arguments.json_file, advice_json(advised)))
    return refuse(fmt::format("{}: it cannot be written", arguments.json_file));
  if (!arguments.svg_file.empty() && !write_file(arguments.svg_file, advice_svg(advised)))
    return refuse(fmt::format("{}: it cannot be written", arguments.svg_file));
  return code;
}

}  // namespace spw::tool
