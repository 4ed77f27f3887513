// Whether bytes are all zero.
#pragma once

#include <cstddef>
#include <cstring>

namespace spw {

// The first is, and each is as the one before it.
inline bool is_all_zero(const std::byte* data, size_t bytes) {
  return bytes == 0 || (data[0] == std::byte{0} && std::memcmp(data, data + 1, bytes - 1) == 0);
}

}  // namespace spw
