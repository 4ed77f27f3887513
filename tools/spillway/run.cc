#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "abi/abi.h"
#include "base/units.h"
#include "commands.h"
#include "messages.h"
#include "program.h"
#include "runtime/options.h"
#include "runtime/store_check.h"

namespace spw::tool {

namespace {

constexpr const char* kUnmodified =
    "Programs have to be recompiled with spillway-clang or spillway-clang++; unmodified programs come with "
    "the mapped engine, "
    "which is not part of this version";
constexpr const char* kNoCheckHint =
    "--no-check starts it all the same, for programs that load or start recompiled ones";

// One line that says why the program cannot run; "" if it can. `path` is where the program was found.
std::string program_refusal(const RunArguments& arguments, std::string* path) {
  if (arguments.program.empty()) return "no program is named; such as: spillway run --memory 4G -- ./prog";
  const std::string& name = arguments.program.front();
  *path = find_program(name);
  if (path->empty()) return fmt::format("{}: there is no such program", name);
  std::error_code error;
  if (std::filesystem::is_directory(*path, error))
    return fmt::format("{}: it is a directory, not a program", name);
  if (::access(path->c_str(), X_OK) != 0)
    return fmt::format("{}: it may not be executed; chmod +x makes it so", name);
  if (!arguments.check_program) return "";
  const ProgramFacts facts = inspect_program(*path);
  switch (facts.kind) {
    case ProgramKind::kScript:
      return fmt::format("{}: it is a script ({}), not a recompiled program. {}. {}", name, facts.detail,
                         kUnmodified, kNoCheckHint);
    case ProgramKind::kUnmodified:
      return fmt::format("{}: it is not recompiled for Spillway. {}. {}", name, kUnmodified, kNoCheckHint);
    case ProgramKind::kForeign:
      return fmt::format("{}: {}, so it is no recompiled program", name, facts.detail);
    case ProgramKind::kRecompiled:
      break;
  }
  const std::string own = fmt::format("__spw_abi_v{}", SPW_ABI_VERSION);
  if (!facts.detail.empty() && facts.detail != own)
    return fmt::format(
        "{}: it was recompiled with another version of Spillway ({}, this one has {}); recompile it", name,
        facts.detail, own);
  return "";
}

std::string store_refusal(const runtime::Options& options) {
  const runtime::StoreFacts facts = runtime::check_store(options.store);
  if (!facts.refusal.empty()) return runtime::refusal_line(options.store, facts);
  if (facts.is_memory)
    warn(fmt::format(
        "the store directory {} is a tmpfs, which is memory itself; name one on a disk with --store",
        options.store));
  return "";
}

std::string stats_refusal(const runtime::Options& options) {
  if (options.stats.kind != runtime::StatsKind::kJson) return "";
  const std::filesystem::path file(options.stats.file);
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    return fmt::format("--stats={}: it is a directory", file.string());
  if (::access(file.parent_path().c_str(), W_OK) != 0)
    return fmt::format("--stats={}: no file can be made there ({})", file.string(), std::strerror(errno));
  return "";
}

// Values given on the command line: checked under the name the user wrote, then handed on as environment, so that the
// runtime and every child of the program read the same.
std::string take_values(const RunArguments& arguments) {
  runtime::Options options;
  for (const runtime::OptionInfo& info : runtime::option_infos()) {
    auto given = arguments.values.find(std::string(info.name));
    if (given == arguments.values.end()) continue;
    Status status = runtime::set_option(options, info, fmt::format("--{}", info.name), given->second);
    if (!status) return status.message();
    ::setenv(runtime::environment_variable(info.name).c_str(), given->second.c_str(), 1);
  }
  return "";
}

}  // namespace

int run_program(const RunArguments& arguments) {
  if (std::string line = take_values(arguments); !line.empty()) return refuse(line);
  std::vector<std::string> warnings;  // the program's runtime prints them
  auto options = runtime::options_of_process(&warnings);
  if (!options) return refuse(options.status().message());
  std::string path;
  for (const std::string& line :
       {program_refusal(arguments, &path), store_refusal(*options), stats_refusal(*options)})
    if (!line.empty()) return refuse(line);

  std::vector<char*> argv;
  for (const std::string& word : arguments.program) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(path.c_str(), argv.data());
  return refuse(fmt::format("{}: it cannot be started: {}", arguments.program.front(), std::strerror(errno)));
}

}  // namespace spw::tool
