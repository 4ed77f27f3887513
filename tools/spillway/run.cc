#include "run.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "abi/abi.h"
#include "abi/hints.h"
#include "base/units.h"
#include "commands.h"
#include "messages.h"
#include "process/options.h"
#include "process/store_check.h"
#include "process/tree_cap.h"
#include "program.h"
#include "watched_run.h"

namespace spw::tool {

namespace {

constexpr const char* kRecompile = "recompile it with spillway-clang or spillway-clang++";
#define SPW_TEXT_OF(symbol) #symbol
#define SPW_TEXT(symbol) SPW_TEXT_OF(symbol)
constexpr const char* kHintsSymbol = SPW_TEXT(SPW_HINTS_VERSION_SYMBOL);

constexpr const char* kNoCheckHint =
    "--no-check starts it all the same, for programs that load or start recompiled ones";

// What is found out about the program to run.
struct Found {
  std::string path;
  bool is_preloaded = false;  // libspillway.so goes into it
};

// The library that belongs to this tool: where this installation has libraries; else in ../lib, as in a build.
// By the name that programs need, or, from where no links can be kept, the plain one.
std::string preloaded_library() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* libraries : {SPW_LIBRARIES_FROM_PROGRAMS, "../lib"})
    for (const char* name : {SPW_RUNTIME_FILE, "libspillway.so"}) {
      const auto library = (folder / libraries / name).lexically_normal();
      if (std::filesystem::exists(library, error)) return library.string();
    }
  return "";
}

// An unmodified program, or the interpreter of a script, needs the mapped engine for its memory.
std::string unmodified_refusal(const std::string& name, const process::Options& options) {
  if (!options.buffer.empty() && options.engine != process::EngineKind::kMapped)
    return "";  // its files, if nothing else
  if (options.engine == process::EngineKind::kTranslated)
    return fmt::format("{}: it is not recompiled, which --engine=translated needs; leave that out, or {}",
                       name, kRecompile);
  if (preloaded_library().empty())
    return fmt::format(
        "{}: libspillway.so, which unmodified programs need, is not beside this tool; install it whole",
        name);
  return "";
}

// The one of a script decides for it: "#!/usr/bin/env python3" starts a program that is preloaded as well.
ProgramFacts look_through_scripts(const std::string& path) {
  constexpr int kScriptDepthMax = 4;
  ProgramFacts facts = inspect_program(path);
  for (int depth = 0; facts.kind == ProgramKind::kScript && depth < kScriptDepthMax; ++depth)
    facts = inspect_program(facts.detail);
  return facts;
}

// One line that says why the program cannot run; "" if it can.
std::string program_refusal(const RunArguments& arguments, const process::Options& options, Found* found) {
  std::string* path = &found->path;
  if (arguments.program.empty()) return "no program is named; such as: spillway run --memory 4G -- ./prog";
  const std::string& name = arguments.program.front();
  *path = find_program(name);
  if (path->empty()) return fmt::format("{}: there is no such program", name);
  std::error_code error;
  if (std::filesystem::is_directory(*path, error))
    return fmt::format("{}: it is a directory, not a program", name);
  if (::access(path->c_str(), X_OK) != 0)
    return fmt::format("{}: it may not be executed; chmod +x makes it so", name);
  const ProgramFacts facts = look_through_scripts(*path);
  found->is_preloaded = facts.kind == ProgramKind::kUnmodified;
  if (!arguments.check_program) return "";
  switch (facts.kind) {
    case ProgramKind::kUnmodified:
      return unmodified_refusal(name, options);
    case ProgramKind::kSealed:
      return fmt::format("{}: {}, so nothing can be loaded into it; {}. {}", name, facts.detail, kRecompile,
                         kNoCheckHint);
    case ProgramKind::kPrivileged:
      return fmt::format(
          "{}: it runs with rights of its own (set-user-ID or the like), so it takes neither a library nor "
          "options from its "
          "environment; run a copy of it without them. {}",
          name, kNoCheckHint);
    case ProgramKind::kScript:
    case ProgramKind::kForeign:
      return fmt::format(
          "{}: {}, so Spillway cannot run it", name,
          facts.kind == ProgramKind::kScript ? "its interpreter is a script of a script" : facts.detail);
    case ProgramKind::kRecompiled:
      break;
  }
  const std::string own[] = {fmt::format("__spw_abi_v{}", SPW_ABI_VERSION), kHintsSymbol};
  if (!facts.detail.empty() && facts.detail != own[0] && facts.detail != own[1])
    return fmt::format(
        "{}: it was recompiled with another version of Spillway ({}, this one has {} and {}); recompile it",
        name, facts.detail, own[0], own[1]);
  return "";
}

std::string store_refusal(const process::Options& options) {
  const process::StoreFacts facts = process::check_store(options.store);
  if (!facts.refusal.empty()) return process::refusal_line(facts);
  if (const std::string line = process::drawback_line(facts); !line.empty()) {
    warn(line);
    ::setenv(process::kStoreToldVariable, options.store.c_str(), 1);
  }
  return "";
}

std::string stats_refusal(const process::Options& options) {
  if (options.stats.kind != process::StatsKind::kJson) return "";
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
  process::Options options;
  for (const process::OptionInfo& info : process::option_infos()) {
    auto given = arguments.values.find(std::string(info.name));
    if (given == arguments.values.end()) continue;
    Status status = process::set_option(options, info, fmt::format("--{}", info.name), given->second);
    if (!status) return status.message();
    ::setenv(process::environment_variable(info.name).c_str(), given->second.c_str(), 1);
  }
  return "";
}

// For the program and, as children inherit it, for what it starts.
void preload() {
  std::string value = preloaded_library();
  if (const char* others = std::getenv("LD_PRELOAD"); others && *others) value += std::string(":") + others;
  ::setenv("LD_PRELOAD", value.c_str(), 1);
}

}  // namespace

int run_program(const RunArguments& arguments) {
  if (std::string line = take_values(arguments); !line.empty()) return refuse(line);
  std::vector<std::string> warnings;  // the program's runtime prints them
  auto options = process::options_of_process(&warnings);
  if (!options) return refuse(options.status().message());
  Found found;
  for (const std::string& line : {program_refusal(arguments, *options, &found), store_refusal(*options),
                                  stats_refusal(*options), watch_refusal(arguments, *options)})
    if (!line.empty()) return refuse(line);
  if (found.is_preloaded) preload();
  if (!options->memory_is_auto)
    if (Status status = process::TreeCap::make_for_children(options->memory_bytes); !status)
      warn(status.message() + ": each process of the run has a cap of its own");

  const PreparedRun prepared{*options, found.path};
  if (arguments.report_file.empty() && arguments.metrics_address.empty()) return become(arguments, prepared);
  return run_watched(arguments, prepared);
}

int become(const RunArguments& arguments, const PreparedRun& prepared) {
  std::vector<char*> argv;
  for (const std::string& word : arguments.program) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(prepared.path.c_str(), argv.data());
  return refuse(fmt::format("{}: it cannot be started: {}", arguments.program.front(), std::strerror(errno)));
}

}  // namespace spw::tool
