// Calls on descriptors, under their ordinary names: interposed for buffered files, and for what must stay open.
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit_status.h"
#include "libc/entry.h"
#include "libc/io/buffered.h"
#include "libc/io/closing.h"
#include "libc/io/native_argument.h"
#include "libc/map/coherence.h"
#include "libc/map/mapping.h"
#include "libc/process/forks.h"
#include "platform/record_locks.h"

using namespace spw::libc;

namespace {

// With what was stored to its mappings.
template <class Sync>
int sync_file(int fd, Sync sync) {
  if (files_are_written_in_memory() && !before_sync(fd)) return static_cast<int>(fail(EIO));
  return sync();
}

int lock_part(int fd, int command, off_t bytes) {
  spw::platform::note_record_lock();
  return files_or_real().lockf(fd, command, bytes);
}

}  // namespace

SPW_ENTRY int close(int fd) { return close_fd(fd); }
SPW_ENTRY int dup(int fd) noexcept { return files_or_real().dup(fd); }
SPW_ENTRY int dup2(int fd, int to) noexcept { return replace_fd(fd, to); }
SPW_ENTRY int dup3(int fd, int to, int flags) noexcept { return replace_fd(fd, to, flags); }
SPW_ENTRY off_t lseek(int fd, off_t offset, int whence) noexcept {
  return files_or_real().lseek(fd, offset, whence);
}
SPW_ENTRY off64_t lseek64(int fd, off64_t offset, int whence) noexcept {
  return files_or_real().lseek(fd, offset, whence);
}
SPW_ENTRY int ftruncate(int fd, off_t bytes) noexcept { return files_or_real().ftruncate(fd, bytes); }
SPW_ENTRY int ftruncate64(int fd, off64_t bytes) noexcept { return files_or_real().ftruncate(fd, bytes); }
SPW_ENTRY int fsync(int fd) {
  return sync_file(fd, [&] { return files_or_real().fsync(fd); });
}
SPW_ENTRY int flock(int fd, int operation) noexcept { return files_or_real().flock(fd, operation); }
SPW_ENTRY int lockf(int fd, int command, off_t bytes) { return lock_part(fd, command, bytes); }
SPW_ENTRY int lockf64(int fd, int command, off64_t bytes) { return lock_part(fd, command, bytes); }
SPW_ENTRY int fdatasync(int fd) {
  return sync_file(fd, [&] { return files_or_real().fdatasync(fd); });
}
SPW_ENTRY int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags) {
  return files_or_real().sync_file_range(fd, offset, bytes, flags);
}
SPW_ENTRY int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  return files_or_real().fallocate(fd, mode, offset, bytes);
}
SPW_ENTRY int fallocate64(int fd, int mode, off64_t offset, off64_t bytes) {
  return files_or_real().fallocate(fd, mode, offset, bytes);
}
SPW_ENTRY int posix_fallocate(int fd, off_t offset, off_t bytes) {
  return files_or_real().posix_fallocate(fd, offset, bytes);
}
SPW_ENTRY int posix_fallocate64(int fd, off64_t offset, off64_t bytes) {
  return files_or_real().posix_fallocate(fd, offset, bytes);
}
// What _FORTIFY_SOURCE makes of open() without a mode.
SPW_ENTRY int __open_2(const char* path, int flags) {
  return files_or_real().open(Text(path), flags, mode_t{0});
}
SPW_ENTRY int __open64_2(const char* path, int flags) {
  return files_or_real().open(Text(path), flags, mode_t{0});
}
SPW_ENTRY int __openat_2(int directory, const char* path, int flags) {
  return files_or_real().openat(directory, Text(path), flags, mode_t{0});
}
SPW_ENTRY int __openat64_2(int directory, const char* path, int flags) {
  return files_or_real().openat(directory, Text(path), flags, mode_t{0});
}
// exit(3) writes what is buffered by itself; these end the process without it.
SPW_ENTRY void _exit(int code) {
  const bool is_whole = flush_mapped_files();
  process_ends_at_once();
  files_or_real()._exit(spw::exit_code_after(code, is_whole));
  __builtin_unreachable();
}
SPW_ENTRY void _Exit(int code) noexcept { _exit(code); }
SPW_ENTRY int close_range(unsigned first, unsigned last, int flags) noexcept {
  return close_fds(first, last, flags);
}
SPW_ENTRY void closefrom(int first) noexcept { close_fds_from(first); }
SPW_ENTRY void sync() noexcept { files_or_real().sync(); }
SPW_ENTRY int syncfs(int fd) noexcept { return files_or_real().syncfs(fd); }
// What programs that were linked with a libc before 2.33 call.
SPW_ENTRY int __xstat(int, const char* path, struct stat* out) noexcept { return stat(path, out); }
SPW_ENTRY int __xstat64(int, const char* path, struct stat64* out) noexcept { return stat64(path, out); }
SPW_ENTRY int __lxstat(int, const char* path, struct stat* out) noexcept { return lstat(path, out); }
SPW_ENTRY int __lxstat64(int, const char* path, struct stat64* out) noexcept { return lstat64(path, out); }
SPW_ENTRY int __fxstat(int, int fd, struct stat* out) noexcept { return fstat(fd, out); }
SPW_ENTRY int __fxstat64(int, int fd, struct stat64* out) noexcept { return fstat64(fd, out); }
SPW_ENTRY int __fxstatat(int, int directory, const char* path, struct stat* out, int flags) noexcept {
  return fstatat(directory, path, out, flags);
}
SPW_ENTRY int __fxstatat64(int, int directory, const char* path, struct stat64* out, int flags) noexcept {
  return fstatat64(directory, path, out, flags);
}
