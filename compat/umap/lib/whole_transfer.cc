#include "whole_transfer.h"

#include <cerrno>
#include <cstring>
#include <new>

namespace Umap {

namespace {

// Calls `move(done)` until all is moved, it moves nothing or it fails. `*done`: what was moved.
template <class Move>
int move_all(std::size_t bytes, std::size_t* done, Move move) noexcept {
  *done = 0;
  for (unsigned retries = 0; *done < bytes;) {
    ssize_t moved;
    errno = 0;
    try {
      moved = move(*done);
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    } catch (...) {
      return EIO;
    }
    if (moved < 0) {
      int error = errno == 0 ? EIO : errno;
      if ((error != EINTR && error != EAGAIN) || retries++ == kRetriesMax) return error;
      continue;
    }
    if (moved == 0) return 0;
    if (static_cast<std::size_t>(moved) > bytes - *done) return EIO;  // more than there was room for
    *done += static_cast<std::size_t>(moved);
    retries = 0;
  }
  return 0;
}

}  // namespace

int read_whole(Store& store, char* buffer, std::size_t bytes, off_t offset) noexcept {
  std::size_t done;
  int error = move_all(bytes, &done, [&](std::size_t at) {
    return store.read_from_store(buffer + at, bytes - at, offset + static_cast<off_t>(at));
  });
  if (error == 0) std::memset(buffer + done, 0, bytes - done);
  return error;
}

int write_whole(Store& store, const char* buffer, std::size_t bytes, off_t offset) noexcept {
  std::size_t done;
  int error = move_all(bytes, &done, [&](std::size_t at) {
    // UMap's signature; a store that changes what it is to write breaks its contract.
    return store.write_to_store(const_cast<char*>(buffer) + at, bytes - at, offset + static_cast<off_t>(at));
  });
  return error == 0 && done < bytes ? EIO : error;
}

}  // namespace Umap
