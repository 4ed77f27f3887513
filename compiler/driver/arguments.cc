#include "driver/arguments.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

namespace spw::driver {

namespace {

using std::string_view;

// Options whose value is the next argument; without this list the value would look like an input file.
constexpr auto kSeparateValue = std::to_array<string_view>({"-o",
                                                            "-I",
                                                            "-L",
                                                            "-D",
                                                            "-U",
                                                            "-F",
                                                            "-x",
                                                            "-T",
                                                            "-u",
                                                            "-z",
                                                            "-e",
                                                            "-l",
                                                            "-A",
                                                            "-B",
                                                            "-b",
                                                            "-G",
                                                            "-V",
                                                            "-MF",
                                                            "-MT",
                                                            "-MQ",
                                                            "-MJ",
                                                            "-include",
                                                            "-imacros",
                                                            "-isystem",
                                                            "-iquote",
                                                            "-idirafter",
                                                            "-iprefix",
                                                            "-iwithprefix",
                                                            "-iwithprefixbefore",
                                                            "-iwithsysroot",
                                                            "-isysroot",
                                                            "-isystem-after",
                                                            "-ivfsoverlay",
                                                            "-imultilib",
                                                            "-include-pch",
                                                            "-cxx-isystem",
                                                            "-c-isystem",
                                                            "-Xclang",
                                                            "-Xlinker",
                                                            "-Xassembler",
                                                            "-Xpreprocessor",
                                                            "-Xanalyzer",
                                                            "-Xopenmp-target",
                                                            "-mllvm",
                                                            "-target",
                                                            "-arch",
                                                            "-rpath",
                                                            "-soname",
                                                            "-resource-dir",
                                                            "-working-directory",
                                                            "-serialize-diagnostics",
                                                            "--serialize-diagnostics",
                                                            "-dependency-file",
                                                            "-dumpbase",
                                                            "-dumpdir",
                                                            "-gen-reproducer",
                                                            "-mthread-model",
                                                            "-wrapper",
                                                            "-specs",
                                                            "-aux-info",
                                                            "-install_name",
                                                            "-framework",
                                                            "--param",
                                                            "--sysroot",
                                                            "--config",
                                                            "--output",
                                                            "--language",
                                                            "--include-directory",
                                                            "--define-macro",
                                                            "--undefine-macro"});

constexpr auto kNoLink = std::to_array<string_view>({"-c",
                                                     "-S",
                                                     "-E",
                                                     "-M",
                                                     "-MM",
                                                     "-fsyntax-only",
                                                     "--syntax-only",
                                                     "--preprocess",
                                                     "--assemble",
                                                     "--compile",
                                                     "--precompile",
                                                     "--analyze",
                                                     "-emit-ast",
                                                     "-emit-pch",
                                                     "-extract-api",
                                                     "--migrate",
                                                     "-rewrite-objc",
                                                     "-emit-interface-stubs",
                                                     "-module-file-info",
                                                     "--version",
                                                     "--help",
                                                     "-help",
                                                     "--help-hidden",
                                                     "-dumpversion",
                                                     "-dumpmachine"});

// What watches memory by its own address, and so cannot see through a translation.
constexpr auto kRefusedSanitizers = std::to_array<string_view>(
    {"address", "hwaddress", "memory", "thread", "kernel-address", "kernel-hwaddress", "kernel-memory",
     "dataflow", "memtag", "memtag-heap", "memtag-stack"});

template <size_t n>
bool one_of(string_view word, const std::array<string_view, n>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::optional<string_view> value_of(string_view argument, string_view prefix) {
  if (!argument.starts_with(prefix)) return std::nullopt;
  return argument.substr(prefix.size());
}

void refuse(Arguments& result, std::string why) {
  if (!result.refusal) result.refusal = std::move(why);
}

// The words of a response file: separated by white space, with quotes and backslashes as clang reads them.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      in_word = true;
    } else if (quote) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) words.push_back(std::move(word));
  return words;
}

void scan_sanitizers(Arguments& result, string_view list) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const string_view name = list.substr(0, comma);
    if (one_of(name, kRefusedSanitizers))
      refuse(result, "-fsanitize=" + std::string(name) +
                         " watches memory by its address and cannot be combined with instrumentation; add "
                         "-fno-spillway");
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

void scan_target(Arguments& result, string_view triple) {
  if (!triple.starts_with("x86_64"))
    refuse(result, "only x86-64 can be instrumented, not " + std::string(triple) + "; add -fno-spillway");
}

void choose_engine(Arguments& result, string_view name) {
  if (name == "mapped")
    result.engine = EngineKind::kMapped;
  else if (name == "translated")
    result.engine = EngineKind::kTranslated;
  else if (name == "none")
    result.engine = EngineKind::kNone;
  else
    refuse(result, "-fspillway-engine=" + std::string(name) + " is unknown: mapped, translated or none");
}

// An option that takes no part in the order of inputs. False: not one of ours, keep it.
bool take_own(Arguments& result, string_view argument) {
  if (argument == "-fno-spillway")
    result.instrument = false;
  else if (argument == "-fspillway")
    result.instrument = true;
  else if (argument == "-fspillway-count")
    result.count_hits = true;
  else if (argument == "-fno-spillway-count")
    result.count_hits = false;
  else if (argument == "-fspillway-durable")
    result.durable = true;
  else if (argument == "-fno-spillway-durable")
    result.durable = false;
  else if (auto engine = value_of(argument, "-fspillway-engine="))
    choose_engine(result, *engine);
  else if (argument == "--spillway-help")
    result.help = true;
  else if (argument == "--spillway-version")
    result.version = true;
  else if (auto shell = value_of(argument, "--spillway-completion="))
    result.shell = std::string(*shell);
  else
    return false;
  return true;
}

void scan_option(Arguments& result, string_view argument) {
  if (one_of(argument, kNoLink) || argument.starts_with("-print-") || argument.starts_with("--print-"))
    result.stops_before_link = true;
  else if (argument == "-cc1" || argument == "-cc1as")
    result.cc1 = true;
  else if (argument == "-r" || argument == "--relocatable")
    result.relocatable = true;
  else if (argument == "-static" || argument == "--static" || argument == "-static-pie")
    refuse(result,
           std::string(argument) + " is not possible: the runtime is a shared library; link dynamically");
  else if (argument == "-m32" || argument == "-mx32" || argument == "-m16")
    refuse(result,
           std::string(argument) + " is not possible: managed addresses need 64 bits; add -fno-spillway");
  else if (auto names = value_of(argument, "-fsanitize="))
    scan_sanitizers(result, *names);
  else if (auto triple = value_of(argument, "--target="))
    scan_target(result, *triple);
  else if (auto linker = value_of(argument, "-fuse-ld="))
    result.linker = std::string(*linker);
  else if (argument == "-fno-lto")
    result.lto = Lto::kNone;
  else if (argument == "-flto=thin")
    result.lto = Lto::kThin;
  else if (argument == "-flto" || argument.starts_with("-flto="))
    result.lto = Lto::kFull;
}

void scan(Arguments& result, const std::vector<std::string>& arguments, bool keep, int depth);

void scan_response_file(Arguments& result, const std::string& name, int depth) {
  std::ifstream file(name);
  if (!file || depth >= kResponseDepthMax) return;  // clang will say so
  std::stringstream text;
  text << file.rdbuf();
  scan(result, words_of(text.str()), false, depth + 1);
}

void scan(Arguments& result, const std::vector<std::string>& arguments, bool keep, int depth) {
  bool only_inputs = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!only_inputs && take_own(result, argument)) {
      if (!keep) refuse(result, argument + " cannot stand in a response file");
      continue;
    }
    if (keep) result.kept.push_back(argument);
    if (only_inputs || argument == "-" || !argument.starts_with('-')) {
      if (!only_inputs && argument.starts_with('@'))
        scan_response_file(result, argument.substr(1), depth);
      else
        result.has_input = true;
      continue;
    }
    if (argument == "--") {
      only_inputs = true;
      continue;
    }
    if (argument.starts_with("-l") || argument.starts_with("-Wl,")) result.has_input = true;
    scan_option(result, argument);
    const bool takes_next = one_of(string_view(argument), kSeparateValue) || argument.starts_with("-Xarch_");
    if (!takes_next || i + 1 >= arguments.size()) continue;
    ++i;
    if (argument == "-target") scan_target(result, arguments[i]);
    if (keep) result.kept.push_back(arguments[i]);
  }
}

}  // namespace

Arguments classify(const std::vector<std::string>& arguments) {
  Arguments result;
  scan(result, arguments, true, 0);
  return result;
}

}  // namespace spw::driver
