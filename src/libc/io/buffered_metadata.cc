#include "libc/io/buffered_metadata.h"

#include <fcntl.h>
#include <sys/sysmacros.h>

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

template <class Stat>
int with_size(int result, Stat* out) {
  FileCalls* calls = file_calls();
  if (result != 0 || calls == nullptr || !S_ISREG(out->st_mode)) return result;
  if (const int64_t size = calls->size_of(out->st_dev, out->st_ino); size != kNotBuffered)
    out->st_size = size;
  return result;
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

int stat(const char* path, struct stat* out) noexcept { return with_size(real().stat(path, out), out); }
int lstat(const char* path, struct stat* out) noexcept { return with_size(real().lstat(path, out), out); }
int fstat(int fd, struct stat* out) noexcept { return with_size(real().fstat(fd, out), out); }
int fstatat(int directory, const char* path, struct stat* out, int flags) noexcept {
  return with_size(real().fstatat(directory, path, out, flags), out);
}
int stat64(const char* path, struct stat64* out) noexcept { return with_size(real().stat64(path, out), out); }
int lstat64(const char* path, struct stat64* out) noexcept {
  return with_size(real().lstat64(path, out), out);
}
int fstat64(int fd, struct stat64* out) noexcept { return with_size(real().fstat64(fd, out), out); }
int fstatat64(int directory, const char* path, struct stat64* out, int flags) noexcept {
  return with_size(real().fstatat64(directory, path, out, flags), out);
}
int statx(int directory, const char* path, int flags, unsigned mask, struct statx* out) noexcept {
  const int result = real().statx(directory, path, flags, mask, out);
  FileCalls* calls = file_calls();
  if (result != 0 || calls == nullptr || !S_ISREG(out->stx_mode)) return result;
  const int64_t size = calls->size_of(makedev(out->stx_dev_major, out->stx_dev_minor), out->stx_ino);
  if (size != kNotBuffered) out->stx_size = static_cast<uint64_t>(size);
  return result;
}

}  // namespace spw::libc::metadata
