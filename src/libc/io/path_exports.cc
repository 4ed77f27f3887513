// Calls that name files, under their ordinary names: names and results may be managed.
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "libc/entry.h"
#include "libc/io/native_argument.h"

using namespace spw::libc;

namespace {
// The mode that open() and its kin take only when they may make a file.
bool makes_a_file(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }
}  // namespace

#define SPW_MODE_ARGUMENT(flags) \
  mode_t mode = 0;               \
  if (makes_a_file(flags)) {     \
    va_list more;                \
    va_start(more, flags);       \
    mode = va_arg(more, mode_t); \
    va_end(more);                \
  }

SPW_ENTRY int open(const char* path, int flags, ...) {
  SPW_MODE_ARGUMENT(flags)
  return files_or_real().open(Text(path), flags, mode);
}
SPW_ENTRY int open64(const char* path, int flags, ...) {
  SPW_MODE_ARGUMENT(flags)
  return files_or_real().open(Text(path), flags, mode);
}
SPW_ENTRY int openat(int directory, const char* path, int flags, ...) {
  SPW_MODE_ARGUMENT(flags)
  return files_or_real().openat(directory, Text(path), flags, mode);
}
SPW_ENTRY int openat64(int directory, const char* path, int flags, ...) {
  SPW_MODE_ARGUMENT(flags)
  return files_or_real().openat(directory, Text(path), flags, mode);
}
SPW_ENTRY int creat(const char* path, mode_t mode) { return files_or_real().creat(Text(path), mode); }
SPW_ENTRY int creat64(const char* path, mode_t mode) { return files_or_real().creat(Text(path), mode); }

SPW_ENTRY int stat(const char* path, struct stat* out) noexcept {
  return files_or_real().stat(Text(path), Native(out));
}
SPW_ENTRY int lstat(const char* path, struct stat* out) noexcept {
  return files_or_real().lstat(Text(path), Native(out));
}
SPW_ENTRY int fstat(int fd, struct stat* out) noexcept { return files_or_real().fstat(fd, Native(out)); }
SPW_ENTRY int fstatat(int directory, const char* path, struct stat* out, int flags) noexcept {
  return files_or_real().fstatat(directory, Text(path), Native(out), flags);
}
SPW_ENTRY int stat64(const char* path, struct stat64* out) noexcept {
  return files_or_real().stat64(Text(path), Native(out));
}
SPW_ENTRY int lstat64(const char* path, struct stat64* out) noexcept {
  return files_or_real().lstat64(Text(path), Native(out));
}
SPW_ENTRY int fstat64(int fd, struct stat64* out) noexcept {
  return files_or_real().fstat64(fd, Native(out));
}
SPW_ENTRY int fstatat64(int directory, const char* path, struct stat64* out, int flags) noexcept {
  return files_or_real().fstatat64(directory, Text(path), Native(out), flags);
}
SPW_ENTRY int statx(int directory, const char* path, int flags, unsigned mask, struct statx* out) noexcept {
  return files_or_real().statx(directory, Text(path), flags, mask, Native(out));
}
SPW_ENTRY int statfs(const char* path, struct statfs* out) noexcept {
  return real().statfs(Text(path), Native(out));
}
SPW_ENTRY int fstatfs(int fd, struct statfs* out) noexcept { return real().fstatfs(fd, Native(out)); }
SPW_ENTRY int statvfs(const char* path, struct statvfs* out) noexcept {
  return real().statvfs(Text(path), Native(out));
}
SPW_ENTRY int statfs64(const char* path, struct statfs64* out) noexcept {
  return real().statfs64(Text(path), Native(out));
}
SPW_ENTRY int fstatfs64(int fd, struct statfs64* out) noexcept { return real().fstatfs64(fd, Native(out)); }
SPW_ENTRY int statvfs64(const char* path, struct statvfs64* out) noexcept {
  return real().statvfs64(Text(path), Native(out));
}
SPW_ENTRY int fstatvfs64(int fd, struct statvfs64* out) noexcept {
  return real().fstatvfs64(fd, Native(out));
}
SPW_ENTRY int fstatvfs(int fd, struct statvfs* out) noexcept { return real().fstatvfs(fd, Native(out)); }

SPW_ENTRY int access(const char* path, int mode) noexcept { return real().access(Text(path), mode); }
SPW_ENTRY int eaccess(const char* path, int mode) noexcept { return real().eaccess(Text(path), mode); }
SPW_ENTRY int euidaccess(const char* path, int mode) noexcept { return real().euidaccess(Text(path), mode); }
SPW_ENTRY int faccessat(int directory, const char* path, int mode, int flags) noexcept {
  return real().faccessat(directory, Text(path), mode, flags);
}
SPW_ENTRY int chmod(const char* path, mode_t mode) noexcept {
  return files_or_real().chmod(Text(path), mode);
}
SPW_ENTRY int fchmod(int fd, mode_t mode) noexcept { return files_or_real().fchmod(fd, mode); }
SPW_ENTRY int fchmodat(int directory, const char* path, mode_t mode, int flags) noexcept {
  return files_or_real().fchmodat(directory, Text(path), mode, flags);
}
SPW_ENTRY int chown(const char* path, uid_t user, gid_t group) noexcept {
  return real().chown(Text(path), user, group);
}
SPW_ENTRY int lchown(const char* path, uid_t user, gid_t group) noexcept {
  return real().lchown(Text(path), user, group);
}
SPW_ENTRY int fchownat(int directory, const char* path, uid_t user, gid_t group, int flags) noexcept {
  return real().fchownat(directory, Text(path), user, group, flags);
}
SPW_ENTRY int truncate(const char* path, off_t bytes) noexcept {
  return files_or_real().truncate(Text(path), bytes);
}
SPW_ENTRY int truncate64(const char* path, off_t bytes) noexcept {
  return files_or_real().truncate(Text(path), bytes);
}
SPW_ENTRY int mkdir(const char* path, mode_t mode) noexcept { return real().mkdir(Text(path), mode); }
SPW_ENTRY int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  return real().mkdirat(directory, Text(path), mode);
}
SPW_ENTRY int mkfifo(const char* path, mode_t mode) noexcept { return real().mkfifo(Text(path), mode); }
SPW_ENTRY int mkfifoat(int directory, const char* path, mode_t mode) noexcept {
  return real().mkfifoat(directory, Text(path), mode);
}
SPW_ENTRY int mknod(const char* path, mode_t mode, dev_t device) noexcept {
  return real().mknod(Text(path), mode, device);
}
SPW_ENTRY int mknodat(int directory, const char* path, mode_t mode, dev_t device) noexcept {
  return real().mknodat(directory, Text(path), mode, device);
}
SPW_ENTRY int rmdir(const char* path) noexcept { return real().rmdir(Text(path)); }
SPW_ENTRY int unlink(const char* path) noexcept { return real().unlink(Text(path)); }
SPW_ENTRY int unlinkat(int directory, const char* path, int flags) noexcept {
  return real().unlinkat(directory, Text(path), flags);
}
SPW_ENTRY int remove(const char* path) noexcept { return real().remove(Text(path)); }
SPW_ENTRY int rename(const char* from, const char* to) noexcept {
  return real().rename(Text(from), Text(to));
}
SPW_ENTRY int renameat(int from_directory, const char* from, int to_directory, const char* to) noexcept {
  return real().renameat(from_directory, Text(from), to_directory, Text(to));
}
SPW_ENTRY int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                        unsigned flags) noexcept {
  return real().renameat2(from_directory, Text(from), to_directory, Text(to), flags);
}
SPW_ENTRY int linkat(int from_directory, const char* from, int to_directory, const char* to,
                     int flags) noexcept {
  return real().linkat(from_directory, Text(from), to_directory, Text(to), flags);
}
SPW_ENTRY int symlinkat(const char* from, int directory, const char* to) noexcept {
  return real().symlinkat(Text(from), directory, Text(to));
}
SPW_ENTRY int link(const char* from, const char* to) noexcept { return real().link(Text(from), Text(to)); }
SPW_ENTRY int symlink(const char* from, const char* to) noexcept {
  return real().symlink(Text(from), Text(to));
}
SPW_ENTRY ssize_t readlink(const char* path, char* out, size_t bytes) noexcept {
  return real().readlink(Text(path), Native(out, bytes), bytes);
}
SPW_ENTRY ssize_t readlinkat(int directory, const char* path, char* out, size_t bytes) noexcept {
  return real().readlinkat(directory, Text(path), Native(out, bytes), bytes);
}
SPW_ENTRY int chdir(const char* path) noexcept { return real().chdir(Text(path)); }
SPW_ENTRY int utimensat(int directory, const char* path, const timespec* times, int flags) noexcept {
  return files_or_real().utimensat(directory, Text(path), Native(times, 2), flags);
}
SPW_ENTRY int utime(const char* path, const utimbuf* times) noexcept {
  return files_or_real().utime(Text(path), Native(times));
}
SPW_ENTRY int utimes(const char* path, const timeval* times) noexcept {
  return files_or_real().utimes(Text(path), Native(times, 2));
}
SPW_ENTRY int lutimes(const char* path, const timeval* times) noexcept {
  return real().lutimes(Text(path), Native(times, 2));
}
SPW_ENTRY int futimes(int fd, const timeval* times) noexcept {
  return files_or_real().futimes(fd, Native(times, 2));
}
SPW_ENTRY int futimens(int fd, const timespec* times) noexcept {
  return files_or_real().futimens(fd, Native(times, 2));
}

SPW_ENTRY ssize_t getxattr(const char* path, const char* name, void* out, size_t bytes) noexcept {
  return real().getxattr(Text(path), Text(name), Native<void>::of_bytes(out, bytes), bytes);
}
SPW_ENTRY ssize_t lgetxattr(const char* path, const char* name, void* out, size_t bytes) noexcept {
  return real().lgetxattr(Text(path), Text(name), Native<void>::of_bytes(out, bytes), bytes);
}
SPW_ENTRY ssize_t fgetxattr(int fd, const char* name, void* out, size_t bytes) noexcept {
  return real().fgetxattr(fd, Text(name), Native<void>::of_bytes(out, bytes), bytes);
}
SPW_ENTRY int setxattr(const char* path, const char* name, const void* value, size_t bytes,
                       int flags) noexcept {
  return files_or_real().setxattr(Text(path), Text(name), Native<const void>::of_bytes(value, bytes), bytes,
                                  flags);
}
SPW_ENTRY int lsetxattr(const char* path, const char* name, const void* value, size_t bytes,
                        int flags) noexcept {
  return real().lsetxattr(Text(path), Text(name), Native<const void>::of_bytes(value, bytes), bytes, flags);
}
SPW_ENTRY int fsetxattr(int fd, const char* name, const void* value, size_t bytes, int flags) noexcept {
  return files_or_real().fsetxattr(fd, Text(name), Native<const void>::of_bytes(value, bytes), bytes, flags);
}
SPW_ENTRY ssize_t listxattr(const char* path, char* out, size_t bytes) noexcept {
  return real().listxattr(Text(path), Native(out, bytes), bytes);
}
SPW_ENTRY ssize_t llistxattr(const char* path, char* out, size_t bytes) noexcept {
  return real().llistxattr(Text(path), Native(out, bytes), bytes);
}
SPW_ENTRY ssize_t flistxattr(int fd, char* out, size_t bytes) noexcept {
  return real().flistxattr(fd, Native(out, bytes), bytes);
}
SPW_ENTRY int removexattr(const char* path, const char* name) noexcept {
  return real().removexattr(Text(path), Text(name));
}
SPW_ENTRY int lremovexattr(const char* path, const char* name) noexcept {
  return real().lremovexattr(Text(path), Text(name));
}
SPW_ENTRY int fremovexattr(int fd, const char* name) noexcept { return real().fremovexattr(fd, Text(name)); }

// Results that the caller gave the room for are the caller's address, not the copy's.
SPW_ENTRY char* getcwd(char* out, size_t bytes) noexcept {
  if (!kernel_cannot_reach(out)) return real().getcwd(out, bytes);
  return real().getcwd(Native(out, bytes), bytes) == nullptr ? nullptr : out;
}
SPW_ENTRY char* realpath(const char* path, char* out) noexcept {
  if (!kernel_cannot_reach(out)) return real().realpath(Text(path), out);
  return real().realpath(Text(path), Native(out, PATH_MAX)) == nullptr ? nullptr : out;
}
SPW_ENTRY int mkstemp(char* pattern) {
  return files_or_real().mkstemp(Native(pattern, string_length(pattern) + 1));
}
SPW_ENTRY int mkstemp64(char* pattern) {
  return files_or_real().mkstemp(Native(pattern, string_length(pattern) + 1));
}
SPW_ENTRY int mkostemp(char* pattern, int flags) {
  return files_or_real().mkostemp(Native(pattern, string_length(pattern) + 1), flags);
}
SPW_ENTRY int mkostemp64(char* pattern, int flags) {
  return files_or_real().mkostemp(Native(pattern, string_length(pattern) + 1), flags);
}
SPW_ENTRY int mkstemps(char* pattern, int suffix) {
  return files_or_real().mkstemps(Native(pattern, string_length(pattern) + 1), suffix);
}
SPW_ENTRY int mkstemps64(char* pattern, int suffix) {
  return files_or_real().mkstemps(Native(pattern, string_length(pattern) + 1), suffix);
}
SPW_ENTRY int mkostemps(char* pattern, int suffix, int flags) {
  return files_or_real().mkostemps(Native(pattern, string_length(pattern) + 1), suffix, flags);
}
SPW_ENTRY int mkostemps64(char* pattern, int suffix, int flags) {
  return files_or_real().mkostemps(Native(pattern, string_length(pattern) + 1), suffix, flags);
}
SPW_ENTRY char* mkdtemp(char* pattern) noexcept {
  return real().mkdtemp(Native(pattern, string_length(pattern) + 1)) == nullptr ? nullptr : pattern;
}

SPW_ENTRY int inotify_add_watch(int fd, const char* path, uint32_t events) noexcept {
  return real().inotify_add_watch(fd, Text(path), events);
}
SPW_ENTRY int memfd_create(const char* name, unsigned flags) noexcept {
  return real().memfd_create(Text(name), flags);
}
SPW_ENTRY int shm_open(const char* name, int flags, mode_t mode) {
  return real().shm_open(Text(name), flags, mode);
}
SPW_ENTRY int shm_unlink(const char* name) { return real().shm_unlink(Text(name)); }

// Directories, and what is noted at files.
SPW_ENTRY ssize_t getdents64(int fd, void* out, size_t bytes) noexcept {
  return real().getdents64(fd, Native<void>::of_bytes(out, bytes), bytes);
}
SPW_ENTRY DIR* opendir(const char* path) { return real().opendir(Text(path)); }
// libc would read and write through this buffer with system calls of its own: it keeps its own where it may not.
SPW_ENTRY int setvbuf(FILE* file, char* buffer, int mode, size_t bytes) noexcept {
  return real().setvbuf(file, kernel_cannot_reach(buffer) ? nullptr : buffer, mode, bytes);
}
SPW_ENTRY void setbuffer(FILE* file, char* buffer, size_t bytes) noexcept {
  (void)setvbuf(file, buffer, buffer == nullptr ? _IONBF : _IOFBF, bytes);
}
SPW_ENTRY void setbuf(FILE* file, char* buffer) noexcept { setbuffer(file, buffer, BUFSIZ); }
