#include "libc/io/buffered_metadata.h"

#include <fcntl.h>

#include "libc/io/buffered.h"
#include "libc/real.h"

namespace spw::libc::metadata {

namespace {

// What cannot be written now is dirty still, and whoever closes or syncs the file is told.
void write_out(int fd) {
  if (FileCalls* calls = file_calls()) (void)calls->flush(fd);
}

void write_out(int directory, const char* path, int flags = 0) {
  FileCalls* calls = file_calls();
  struct stat info;
  if (calls == nullptr) return;
  if (path == nullptr) return write_out(directory);
  if (real().fstatat(directory, path, &info, flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) == 0 &&
      S_ISREG(info.st_mode))
    (void)calls->flush_file(info.st_dev, info.st_ino);
}

}  // namespace

int chmod(const char* path, mode_t mode) noexcept {
  write_out(AT_FDCWD, path);
  return real().chmod(path, mode);
}
int fchmod(int fd, mode_t mode) noexcept {
  write_out(fd);
  return real().fchmod(fd, mode);
}
int fchmodat(int directory, const char* path, mode_t mode, int flags) noexcept {
  write_out(directory, path, flags);
  return real().fchmodat(directory, path, mode, flags);
}
int utimensat(int directory, const char* path, const timespec* times, int flags) noexcept {
  write_out(directory, path, flags);
  return real().utimensat(directory, path, times, flags);
}
int futimens(int fd, const timespec* times) noexcept {
  write_out(fd);
  return real().futimens(fd, times);
}
int futimes(int fd, const timeval* times) noexcept {
  write_out(fd);
  return real().futimes(fd, times);
}
int utime(const char* path, const utimbuf* times) noexcept {
  write_out(AT_FDCWD, path);
  return real().utime(path, times);
}
int utimes(const char* path, const timeval* times) noexcept {
  write_out(AT_FDCWD, path);
  return real().utimes(path, times);
}
int setxattr(const char* path, const char* name, const void* value, size_t bytes, int flags) noexcept {
  write_out(AT_FDCWD, path);
  return real().setxattr(path, name, value, bytes, flags);
}
int fsetxattr(int fd, const char* name, const void* value, size_t bytes, int flags) noexcept {
  write_out(fd);
  return real().fsetxattr(fd, name, value, bytes, flags);
}

}  // namespace spw::libc::metadata
