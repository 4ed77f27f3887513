// The clang command that a wrapper runs: the user's arguments with what instrumentation needs put around them.
#pragma once

#include <string>
#include <vector>

#include "driver/arguments.h"

namespace spw::driver {

struct Places {
  std::string clang;              // program to run, looked up in PATH
  std::string library_directory;  // of libspillway.so
  std::string plugin;             // spillway_pass.so
  bool cxx = false;
};

// `arguments` has no refusal.
std::vector<std::string> clang_command(const Arguments& arguments, const Places& places);

// Why `arguments` cannot be linked as asked, or nothing. Beyond what classify() sees in single options.
std::optional<std::string> conflict(const Arguments& arguments);

}  // namespace spw::driver
