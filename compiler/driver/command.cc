#include "driver/command.h"

#include <algorithm>
#include <initializer_list>

#include "driver/places.h"

namespace spw::driver {

namespace {

using Words = std::vector<std::string>;

void append(Words& words, std::initializer_list<std::string> more) { words.insert(words.end(), more); }

bool is_lld(const std::string& linker) { return linker.find("lld") != std::string::npos; }

void append_pass_option(Words& words, const std::string& option) {
  append(words, {"-Xclang", "-mllvm", "-Xclang", option});
}

const char* engine_option(EngineKind engine) {
  switch (engine) {
    case EngineKind::kTranslated:
      return "-spw-engine=translated";
    case EngineKind::kMapped:
      return "-spw-engine=mapped";
    case EngineKind::kNone:
      break;
  }
  return "-spw-engine=none";
}

// Through -Xclang, because only the compiler proper loads the plugin: the assembler would not know its
// options. -load makes the options known before they are read; -fpass-plugin alone comes too late.
void append_compile_options(Words& words, const Arguments& arguments, const std::string& plugin) {
  append(words, {"-fpass-plugin=" + plugin, "-Xclang", "-load", "-Xclang", plugin});
  append_pass_option(words, engine_option(arguments.engine));
  // The linker's plugin has no options: the modules tell it the engine.
  if (arguments.lto != Lto::kNone) append_pass_option(words, "-spw-mark-engine");
  if (arguments.count_hits) append_pass_option(words, "-spw-count-hits");
  if (arguments.durable) append_pass_option(words, "-spw-durable");
}

void append_link_options(Words& words, const Arguments& arguments, const Places& places) {
  const std::string& libraries = places.library_directory;
  if (arguments.lto != Lto::kNone) {
    if (!arguments.linker) words.push_back("-fuse-ld=lld");
    words.push_back("-Wl,--load-pass-plugin=" + places.plugin);
  }
  words.push_back("-L" + libraries);
  if (!is_system_directory(libraries)) words.push_back("-Wl,-rpath," + libraries);
  append(words, {"-Wl,--push-state,--no-as-needed", "-lspillway"});
  // Which needs libstdc++: programs in C are to do without, unless there are modules of C++ in them.
  if (!places.cxx) words.push_back("-Wl,--as-needed");
  append(words, {"-lspillway_cxx", "-Wl,--pop-state"});
}

}  // namespace

std::optional<std::string> conflict(const Arguments& arguments) {
  if (arguments.count_hits && arguments.engine != EngineKind::kTranslated)
    return "-fspillway-count counts translations, which only the translated engine makes; add "
           "-fspillway-engine=translated";
  if (arguments.lto == Lto::kNone) return std::nullopt;
  if (arguments.linker && !is_lld(*arguments.linker))
    return "with -flto the code is instrumented by the linker, which has to be lld, not " + *arguments.linker;
  if (arguments.count_hits) return "-fspillway-count cannot be combined with -flto";
  return std::nullopt;
}

std::vector<std::string> clang_command(const Arguments& arguments, const Places& places) {
  Words command{places.clang};
  if (places.cxx) command.push_back("--driver-mode=g++");
  if (!arguments.instrument || arguments.cc1) {
    command.insert(command.end(), arguments.kept.begin(), arguments.kept.end());
    return command;
  }
  command.push_back("--start-no-unused-arguments");
  append_compile_options(command, arguments, places.plugin);
  command.push_back("--end-no-unused-arguments");
  // Behind "--" every word is an input.
  const auto inputs = std::find(arguments.kept.begin(), arguments.kept.end(), "--");
  command.insert(command.end(), arguments.kept.begin(), inputs);
  if (arguments.links()) append_link_options(command, arguments, places);
  command.insert(command.end(), inputs, arguments.kept.end());
  return command;
}

}  // namespace spw::driver
