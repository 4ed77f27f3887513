#include "backend.h"

#include <algorithm>
#include <cstring>

namespace Umap {

int Source::read(char* buffer, std::size_t bytes, std::size_t at) noexcept {
  const std::size_t inside = at >= length_bytes_ ? 0 : std::min(bytes, length_bytes_ - at);
  std::memset(buffer + inside, 0, bytes - inside);
  return read_whole(store_, buffer, inside, offset_bytes_ + static_cast<off_t>(at));
}

int Source::write(const char* buffer, std::size_t bytes, std::size_t at) noexcept {
  const std::size_t inside = at >= length_bytes_ ? 0 : std::min(bytes, length_bytes_ - at);
  return write_whole(store_, buffer, inside, offset_bytes_ + static_cast<off_t>(at));
}

}  // namespace Umap
