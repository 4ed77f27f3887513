// Patterns of the shell for whole paths, separated by colons, as options take them; * matches slashes, too.
#pragma once

#include <string>
#include <string_view>

namespace spw::files {

bool matches_any(std::string_view patterns, const std::string& path);
// The path of the file that `fd` has open; empty where there is none to be had.
std::string path_of(int fd);

}  // namespace spw::files
