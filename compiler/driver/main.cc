// spillway-clang, spillway-clang++: clang with the instrumentation pass at compile steps and the runtime at link steps.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "driver/arguments.h"
#include "driver/command.h"

namespace {

using namespace spw::driver;

constexpr const char* kHelp = R"(spillway-clang, spillway-clang++: clang that instruments for Spillway

They take every option of clang, compile with the Spillway pass and link with libspillway
and, for C++, libspillway_cxx. Of their own:

  -fno-spillway        compile and link as plain clang would
  -fspillway-engine=E  write code for the engine E: mapped (the default) or translated; or none, which manages no memory
  -fspillway-durable   announce stores to persistent memory, for durable sections; with any engine
  -fspillway-count     count translations that the direct SATC answers (slower; see --stats)
  --spillway-version   the version, the clang it runs and the pass it loads
  --spillway-help      this text

With -flto the code is instrumented by the linker, which then is lld.
Environment: SPILLWAY_CLANG, the clang to run (default )" SPW_CLANG_DEFAULT
                              R"(; it has to be of the LLVM the pass was built for).
Not possible: -static, -m32, targets other than x86-64, -fsanitize=address, hwaddress, memory, thread.
)";

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "spillway-clang: %s\n", why.c_str());
  std::exit(1);
}

Places find_places(const char* called_as) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) fail("cannot find my own program file: " + error.message());
  const char* clang = std::getenv("SPILLWAY_CLANG");
  return {.clang = clang && *clang ? clang : SPW_CLANG_DEFAULT,
          .library_directory = (self.parent_path().parent_path() / "lib").string(),
          .cxx = std::string_view(called_as).ends_with("++")};
}

void print_version(const Places& places) {
  std::printf("spillway " SPW_VERSION "\nclang: %s\npass: %s/spillway_pass.so\n", places.clang.c_str(),
              places.library_directory.c_str());
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
  const Places places = find_places(argv[0]);
  Arguments arguments = classify({argv + 1, argv + argc});
  if (arguments.help || arguments.version) {
    arguments.help ? static_cast<void>(std::fputs(kHelp, stdout)) : print_version(places);
    return 0;
  }
  if (arguments.instrument && !arguments.cc1) {
    if (!arguments.refusal) arguments.refusal = conflict(arguments);
    if (arguments.refusal) fail(*arguments.refusal);
  }
  run(clang_command(arguments, places));
}
