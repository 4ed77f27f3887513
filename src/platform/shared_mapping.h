// A shared mapping of a file that is only read, as the kernel knows it: /proc/self/maps.
//
// Threads: one at a time, since it is asked for as the process ends. nullopt: there is none there, or no /proc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace spw::platform {

struct SharedMapping {
  std::string path;       // as the kernel writes it
  uint64_t offset_bytes;  // of the address, in the file
};

std::optional<SharedMapping> read_only_shared_mapping_at(uintptr_t address);

}  // namespace spw::platform
