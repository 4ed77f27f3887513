// What can be said of a store's directory before anything is stored there.
#pragma once

#include <cstdint>
#include <string>

namespace spw::tool {

// Less free space than this is no place to put data.
inline constexpr uint64_t kStoreFreeBytesMin = uint64_t{64} << 20;

struct StoreFacts {
  std::string refusal;  // one clause that says why the directory cannot be used; "" if it can
  uint64_t free_bytes = 0;
  bool is_memory = false;  // a tmpfs or ramfs
  bool direct = false;     // transfers can go around the page cache
};

// Makes a nameless file in `directory` to find out.
StoreFacts check_store(const std::string& directory);

}  // namespace spw::tool
