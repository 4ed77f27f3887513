// The files of a striped file, by its name "striped:[chunk=SIZE,]PATH,PATH,...": a path as it is or as file:PATH, a
// comma inside of it written %2C (store/striped/striped_name.h).
//
// Threads: pure but for open(2).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "platform/file.h"

namespace spw::files {

struct StripedMembers {
  std::vector<std::string> paths;
  std::vector<platform::File> files;  // open, in the same order
  uint64_t chunk_bytes = 0;

  static bool is_name(std::string_view name);
  // open(2) of all of them, as of one file: with O_CREAT none of them may be missing while others hold data (ENOENT),
  // with O_EXCL none may be there. O_TRUNC is left to who knows whether the file is open already. Errors: EINVAL with a
  // sentence for a name that is none.
  static Result<StripedMembers> open(std::string_view name, int flags, unsigned mode);
};

}  // namespace spw::files
