// spillway-clang, spillway-clang++: clang with the instrumentation pass at compile steps and the runtime at link steps.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "driver/arguments.h"
#include "driver/command.h"
#include "driver/completion.h"
#include "driver/own_options.h"
#include "driver/places.h"

namespace {

using namespace spw::driver;

constexpr const char* kHelpHead = R"(spillway-clang, spillway-clang++: clang that instruments for Spillway

They take every option of clang, compile with the Spillway pass and link with libspillway
and, for C++, libspillway_cxx. Of their own:

)";
constexpr const char* kHelpEnd = R"(
With -flto the code is instrumented by the linker, which then is lld.
Environment: SPILLWAY_CLANG, the clang to run (default )" SPW_CLANG_DEFAULT
                                 R"(; it has to be of the LLVM the pass was built for).
Not possible: -static, -m32, targets other than x86-64, -fsanitize=address, hwaddress, memory, thread.
)";

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "spillway-clang: %s\n", why.c_str());
  std::exit(1);
}

void print_help() {
  constexpr int kColumn = 24;
  std::fputs(kHelpHead, stdout);
  for (const OwnOption& option : kOwnOptions) {
    std::string choices(option.choices);
    std::replace(choices.begin(), choices.end(), ' ', '|');
    const std::string shown = std::string(option.name) + choices;
    const bool fits = static_cast<int>(shown.size()) < kColumn;
    std::printf("  %-*s%s%*s%.*s\n", kColumn, shown.c_str(), fits ? "" : "\n  ", fits ? 0 : kColumn, "",
                static_cast<int>(option.help.size()), option.help.data());
  }
  std::fputs(kHelpEnd, stdout);
}

void print_version(const Places& places) {
  std::printf("spillway " SPW_VERSION "\nclang: %s\npass: %s\n", places.clang.c_str(), places.plugin.c_str());
}

void print_completion(const std::string& shell, const Places& places) {
  const std::optional<std::string> script = completion_script(shell, places.clang);
  if (!script) fail("--spillway-completion=" + shell + ": there are bash, zsh and fish");
  std::fputs(script->c_str(), stdout);
}

[[noreturn]] void run(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  std::fprintf(stderr, "spillway-clang: cannot run %s: %s; set SPILLWAY_CLANG\n", words[0],
               std::strerror(errno));
  std::exit(127);
}

}  // namespace

int main(int argc, char** argv) {
  std::string error;
  const Places places = find_places(argv[0], &error);
  if (!error.empty()) fail(error);
  Arguments arguments = classify({argv + 1, argv + argc});
  if (arguments.help) print_help();
  if (arguments.version) print_version(places);
  if (arguments.shell) print_completion(*arguments.shell, places);
  if (arguments.help || arguments.version || arguments.shell) return 0;
  if (arguments.instrument && !arguments.cc1) {
    if (!arguments.refusal) arguments.refusal = conflict(arguments);
    if (arguments.refusal) fail(*arguments.refusal);
    if (::access(places.plugin.c_str(), R_OK) != 0)
      fail(places.plugin + ": the pass is not there; install Spillway whole, or add -fno-spillway");
  }
  run(clang_command(arguments, places));
}
