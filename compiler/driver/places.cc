#include "driver/places.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace spw::driver {

namespace {

constexpr const char* kPass = "spillway_pass.so";

}  // namespace

Places find_places(const char* called_as, std::string* error) {
  std::error_code failed;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
  if (failed) *error = "cannot find my own program file: " + failed.message();
  const char* clang = std::getenv("SPILLWAY_CLANG");
  Places places{.clang = clang && *clang ? clang : SPW_CLANG_DEFAULT,
                .library_directory = {},
                .plugin = {},
                .cxx = std::string_view(called_as).ends_with("++")};
  for (const char* libraries : {SPW_LIBRARIES_FROM_PROGRAMS, "../lib"})
    for (const char* below : {"spillway", "."}) {
      const auto directory = (folder / libraries).lexically_normal();
      const auto plugin = (directory / below / kPass).lexically_normal();
      const bool is_there = std::filesystem::exists(plugin, failed);
      if (!is_there && !places.plugin.empty()) continue;
      places.library_directory = directory.string();
      places.plugin = plugin.string();
      if (is_there) return places;
    }
  return places;
}

bool is_system_directory(const std::string& library_directory) {
  constexpr auto kDirectories = std::to_array<std::string_view>(
      {"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64"});
  return std::find(kDirectories.begin(), kDirectories.end(), library_directory) != kDirectories.end();
}

}  // namespace spw::driver
