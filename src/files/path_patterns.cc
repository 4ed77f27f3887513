#include "files/path_patterns.h"

#include <fnmatch.h>
#include <limits.h>
#include <unistd.h>

namespace spw::files {

bool matches_any(std::string_view patterns, const std::string& path) {
  while (!patterns.empty()) {
    const size_t colon = patterns.find(':');
    if (::fnmatch(std::string(patterns.substr(0, colon)).c_str(), path.c_str(), 0) == 0) return true;
    patterns = colon == patterns.npos ? std::string_view() : patterns.substr(colon + 1);
  }
  return false;
}

std::string path_of(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/thread-self/fd/" + std::to_string(fd);
  const ssize_t bytes = ::readlink(link.c_str(), path, sizeof path);
  return bytes <= 0 ? std::string() : std::string(path, static_cast<size_t>(bytes));
}

}  // namespace spw::files
