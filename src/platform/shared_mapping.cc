#include "platform/shared_mapping.h"

#include <cinttypes>
#include <climits>
#include <cstdio>

namespace spw::platform {

namespace {

constexpr size_t kLineBytes = PATH_MAX + 128;

std::optional<SharedMapping> mapping_of(const char* line, uintptr_t address) {
  uintptr_t begin = 0, end = 0;
  uint64_t offset = 0;
  char rights[5] = {};
  int path_at = 0;
  // Address range, rights, offset, device, inode, path.
  if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %*s %*s %n", &begin, &end, rights, &offset,
                  &path_at) < 4 ||
      address < begin || address >= end || rights[1] != '-' || rights[3] != 's' || line[path_at] != '/')
    return std::nullopt;
  SharedMapping found{line + path_at, offset + (address - begin)};
  while (!found.path.empty() && found.path.back() == '\n') found.path.pop_back();
  return found;
}

}  // namespace

std::optional<SharedMapping> read_only_shared_mapping_at(uintptr_t address) {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return std::nullopt;
  static char line[kLineBytes];  // one thread ends the process
  std::optional<SharedMapping> found;
  while (!found && std::fgets(line, sizeof line, maps) != nullptr) found = mapping_of(line, address);
  std::fclose(maps);
  return found;
}

}  // namespace spw::platform
