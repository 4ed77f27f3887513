#include "file_store.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>

namespace Umap {

FileStore::FileStore(int fd, off_t offset_bytes, std::size_t bytes)
    : fd_(::fcntl(fd, F_DUPFD_CLOEXEC, 0)), offset_bytes_(offset_bytes), bytes_(bytes) {
  if (fd_ < 0) return;
  buffered_fd_ = fd_;
  int flags = ::fcntl(fd_, F_GETFL);
  if (!(flags & O_DIRECT)) return;
  std::string path = "/proc/self/fd/" + std::to_string(fd_);
  int buffered = ::open(path.c_str(), (flags & O_ACCMODE) | O_CLOEXEC);
  if (buffered >= 0) buffered_fd_ = buffered;
}

FileStore::~FileStore() {
  if (buffered_fd_ != fd_) ::close(buffered_fd_);
  if (fd_ >= 0) ::close(fd_);
}

std::size_t FileStore::inside(std::size_t nb, off_t off) const {
  auto from = static_cast<std::size_t>(off);
  return from >= bytes_ ? 0 : std::min(nb, bytes_ - from);
}

ssize_t FileStore::read_from_store(char* buf, std::size_t nb, off_t off) {
  const std::size_t bytes = inside(nb, off);
  if (bytes == 0) return 0;
  ssize_t moved = ::pread(fd_, buf, bytes, offset_bytes_ + off);
  if (moved < 0 && errno == EINVAL) moved = ::pread(buffered_fd_, buf, bytes, offset_bytes_ + off);
  return moved;
}

// What lies behind the part is told to be written and is not.
ssize_t FileStore::write_to_store(char* buf, std::size_t nb, off_t off) {
  const std::size_t bytes = inside(nb, off);
  if (bytes == 0) return static_cast<ssize_t>(nb);
  ssize_t moved = ::pwrite(fd_, buf, bytes, offset_bytes_ + off);
  if (moved < 0 && errno == EINVAL) moved = ::pwrite(buffered_fd_, buf, bytes, offset_bytes_ + off);
  return moved == static_cast<ssize_t>(bytes) ? static_cast<ssize_t>(nb) : moved;
}

Store* Store::make_store(void*, std::size_t rsize, std::size_t, int fd) {
  auto* store = new (std::nothrow) FileStore(fd, 0, rsize);
  if (store && store->is_open()) return store;
  int error = store ? errno : ENOMEM;
  delete store;
  errno = error;
  return nullptr;
}

}  // namespace Umap
