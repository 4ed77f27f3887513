// All of a file of the kernel's about a process, however large: /proc/PID/maps of some have megabytes. (Of small ones:
// platform/proc_text.h.)
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace spw::tool {

// "" where it cannot be read.
inline std::string contents_of(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace spw::tool
