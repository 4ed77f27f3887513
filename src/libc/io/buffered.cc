// The functions of files_or_real() while files are buffered: each asks file_calls() first.
#include "libc/io/buffered.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/exit_status.h"
#include "libc/io/bounce.h"
#include "libc/io/buffered_metadata.h"
#include "libc/io/descriptors.h"
#include "libc/real.h"

namespace spw::libc {

namespace {

using metadata::chmod, metadata::fchmod, metadata::fchmodat, metadata::futimens, metadata::futimes;
using metadata::fsetxattr, metadata::setxattr, metadata::utime, metadata::utimensat, metadata::utimes;
using metadata::fstat, metadata::fstat64, metadata::fstatat, metadata::fstatat64, metadata::lstat;
using metadata::lstat64, metadata::stat, metadata::stat64, metadata::statx;

Atomic<FileCalls*> g_calls{nullptr};
Atomic<pid_t> g_process{0};

int64_t answer(int64_t result) { return result < 0 ? fail(static_cast<int>(-result)) : result; }

// What the calls say of a descriptor, or what libc does. `bytes`: that a transfer has moved.
template <class Ask, class Libc, class Bytes>
auto either(int fd, Ask ask, Libc libc_call, Bytes bytes) -> decltype(libc_call()) {
  using Answer = decltype(libc_call());
  FileCalls* calls = file_calls();
  if (calls == nullptr) return libc_call();
  if (const int64_t result = ask(*calls); result != kNotBuffered) return static_cast<Answer>(answer(result));
  FileCalls::KernelCall call(*calls, fd, FileCalls::KernelCall::Counts::kAsOne);
  if (call.is_over())
    if (const int64_t result = ask(*calls); result != kNotBuffered)
      return static_cast<Answer>(answer(result));
  const Answer result = libc_call();
  call.moved(bytes(result));
  return result;
}
template <class Ask, class Libc>
auto either(int fd, Ask ask, Libc libc_call) -> decltype(libc_call()) {
  return either(fd, ask, libc_call, [](int64_t) { return int64_t{0}; });
}
template <class Ask, class Libc>
ssize_t transfer(int fd, Ask ask, Libc libc_call) {
  return either(fd, ask, libc_call, [](int64_t moved) { return moved; });
}

std::span<const iovec> span_of(const iovec* pieces, int count) {
  return {pieces, static_cast<size_t>(std::max(count, 0))};
}
iovec one(const void* buffer, size_t bytes) { return {const_cast<void*>(buffer), bytes}; }

// ---- Transfers ----

ssize_t read(int fd, void* buffer, size_t bytes) {
  const iovec to = one(buffer, bytes);
  return transfer(
      fd, [&](FileCalls& c) { return c.read(fd, {&to, 1}, kOwnPlace); },
      [&] { return real().read(fd, buffer, bytes); });
}
ssize_t write(int fd, const void* buffer, size_t bytes) {
  const iovec from = one(buffer, bytes);
  return transfer(
      fd, [&](FileCalls& c) { return c.write(fd, {&from, 1}, kOwnPlace); },
      [&] { return real().write(fd, buffer, bytes); });
}
ssize_t pread(int fd, void* buffer, size_t bytes, off_t offset) {
  if (offset < 0) return fail(EINVAL);
  const iovec to = one(buffer, bytes);
  return transfer(
      fd, [&](FileCalls& c) { return c.read(fd, {&to, 1}, offset); },
      [&] { return real().pread(fd, buffer, bytes, offset); });
}
ssize_t pwrite(int fd, const void* buffer, size_t bytes, off_t offset) {
  if (offset < 0) return fail(EINVAL);
  const iovec from = one(buffer, bytes);
  return transfer(
      fd, [&](FileCalls& c) { return c.write(fd, {&from, 1}, offset); },
      [&] { return real().pwrite(fd, buffer, bytes, offset); });
}
ssize_t readv(int fd, const iovec* pieces, int count) {
  return transfer(
      fd, [&](FileCalls& c) { return c.read(fd, span_of(pieces, count), kOwnPlace); },
      [&] { return real().readv(fd, pieces, count); });
}
ssize_t writev(int fd, const iovec* pieces, int count) {
  return transfer(
      fd, [&](FileCalls& c) { return c.write(fd, span_of(pieces, count), kOwnPlace); },
      [&] { return real().writev(fd, pieces, count); });
}
ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) {
  if (offset < 0) return fail(EINVAL);
  return transfer(
      fd, [&](FileCalls& c) { return c.read(fd, span_of(pieces, count), offset); },
      [&] { return real().preadv(fd, pieces, count, offset); });
}
ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) {
  if (offset < 0) return fail(EINVAL);
  return transfer(
      fd, [&](FileCalls& c) { return c.write(fd, span_of(pieces, count), offset); },
      [&] { return real().pwritev(fd, pieces, count, offset); });
}
ssize_t preadv2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  return transfer(
      fd, [&](FileCalls& c) { return c.read(fd, span_of(pieces, count), offset); },
      [&] { return real().preadv2(fd, pieces, count, offset, flags); });
}
// RWF_SYNC and RWF_DSYNC are heeded, by a sync of all of the file; RWF_APPEND is not known here.
ssize_t pwritev2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  return transfer(
      fd,
      [&](FileCalls& c) -> int64_t {
        if ((flags & RWF_APPEND) != 0 && c.is_buffered(fd)) return -EOPNOTSUPP;
        const int64_t wrote = c.write(fd, span_of(pieces, count), offset);
        if (wrote <= 0 || (flags & (RWF_SYNC | RWF_DSYNC)) == 0) return wrote;
        const int64_t synced = c.sync(fd, (flags & RWF_SYNC) != 0);
        return synced == 0 ? wrote : synced;
      },
      [&] { return real().pwritev2(fd, pieces, count, offset, flags); });
}

// From one descriptor to another where the kernel cannot do it by
// itself. Offsets: nullptr is the open file's own place.
ssize_t carry(int from, off_t* from_offset, int to, off_t* to_offset, size_t bytes) {
  Bounce bounce(bytes);
  if (bounce.bytes() == 0 && bytes > 0) return fail(ENOMEM);
  size_t done = 0;
  while (done < bytes) {
    const size_t wanted = std::min(bytes - done, bounce.bytes());
    const ssize_t got =
        from_offset ? pread(from, bounce.data(), wanted, *from_offset) : read(from, bounce.data(), wanted);
    if (got <= 0) return done > 0 ? static_cast<ssize_t>(done) : got;
    const auto have = static_cast<size_t>(got);
    const ssize_t put =
        to_offset ? pwrite(to, bounce.data(), have, *to_offset) : write(to, bounce.data(), have);
    const size_t moved = put > 0 ? static_cast<size_t>(put) : 0;
    if (from_offset) *from_offset += static_cast<off_t>(moved);
    if (to_offset) *to_offset += static_cast<off_t>(moved);
    if (!from_offset && moved < have)
      files_or_real().lseek(from, static_cast<off_t>(moved) - static_cast<off_t>(have), SEEK_CUR);
    done += moved;
    if (put < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;
    if (moved < wanted) break;
  }
  return static_cast<ssize_t>(done);
}
// Calls libc's for two descriptors of which none is buffered, nor will be meanwhile; else ours().
template <class Libc, class Ours>
ssize_t between(int from, int to, Libc libc_call, Ours ours) {
  FileCalls* calls = file_calls();
  if (calls == nullptr) return libc_call();
  const FileCalls::KernelCall one(*calls, from), other(*calls, to);
  return calls->is_buffered(from) || calls->is_buffered(to) ? ours() : libc_call();
}
ssize_t sendfile(int to, int from, off_t* offset, size_t bytes) noexcept {
  return between(
      from, to, [&] { return real().sendfile(to, from, offset, bytes); },
      [&] { return carry(from, offset, to, nullptr, bytes); });
}
// As the kernel has it: no further than the end of what is read, and of one file no ranges that overlap.
ssize_t copy_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes) {
  const FileFunctions& files = files_or_real();
  struct stat source, target;
  if (files.fstat(from, &source) != 0 || files.fstat(to, &target) != 0) return -1;
  if ((files.fcntl(to, F_GETFL) & O_APPEND) != 0) return fail(EBADF);
  const off64_t begin = from_offset ? *from_offset : files.lseek(from, 0, SEEK_CUR);
  const off64_t target_begin = to_offset ? *to_offset : files.lseek(to, 0, SEEK_CUR);
  if (begin < 0 || target_begin < 0) return fail(EINVAL);
  if (S_ISREG(source.st_mode))
    bytes = std::min(bytes, static_cast<size_t>(std::max<off64_t>(source.st_size - begin, 0)));
  const auto length = static_cast<off64_t>(bytes);
  const bool overlap = begin - length < target_begin && target_begin < begin + length;
  if (source.st_dev == target.st_dev && source.st_ino == target.st_ino && overlap) return fail(EINVAL);
  return carry(from, from_offset, to, to_offset, bytes);
}
ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes,
                        unsigned flags) {
  return between(
      from, to, [&] { return real().copy_file_range(from, from_offset, to, to_offset, bytes, flags); },
      [&] { return flags != 0 ? fail(EINVAL) : copy_range(from, from_offset, to, to_offset, bytes); });
}
ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes, unsigned flags) {
  return between(
      from, to, [&] { return real().splice(from, from_offset, to, to_offset, bytes, flags); },
      [] { return fail(EINVAL); });  // as of files that cannot be spliced
}

// ---- Opening ----

int noted(int fd, int flags, const char* path = nullptr) {
  if (fd >= 0)
    if (FileCalls* calls = descriptor_calls()) calls->opened(fd, flags, path);
  return fd;
}
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = va_arg(more, mode_t);  // our callers always give one
  va_end(more);
  return noted(real().open(path, flags, mode), flags, path);
}
int openat(int directory, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = va_arg(more, mode_t);
  va_end(more);
  return noted(real().openat(directory, path, flags, mode), flags, path);
}
int creat(const char* path, mode_t mode) {
  return noted(real().creat(path, mode), O_WRONLY | O_CREAT | O_TRUNC, path);
}
int mkstemp(char* pattern) { return noted(real().mkstemp(pattern), O_RDWR | O_CREAT); }
int mkstemps(char* pattern, int suffix) { return noted(real().mkstemps(pattern, suffix), O_RDWR | O_CREAT); }
int mkostemps(char* pattern, int suffix, int flags) {
  return noted(real().mkostemps(pattern, suffix, flags), O_RDWR | O_CREAT | flags);
}
int mkostemp(char* pattern, int flags) {
  return noted(real().mkostemp(pattern, flags), O_RDWR | O_CREAT | flags);
}

// ---- Closing and duplicating ----

int close(int fd) {
  FileCalls* calls = descriptor_calls();
  const int64_t written = calls != nullptr ? calls->close(fd) : kNotBuffered;
  const int closed = real().close(fd);
  return written == kNotBuffered || written == 0 || closed != 0 ? closed : static_cast<int>(answer(written));
}
int close_range(unsigned first, unsigned last, int flags) noexcept {
  if ((flags & CLOSE_RANGE_CLOEXEC) == 0 && first <= last)
    if (FileCalls* calls = descriptor_calls())
      calls->close_range(static_cast<int>(std::min<unsigned>(first, INT_MAX)),
                         static_cast<int>(std::min<unsigned>(last, INT_MAX)));
  return real().close_range(first, last, flags);
}
void closefrom(int first) noexcept {
  if (FileCalls* calls = descriptor_calls()) calls->close_range(std::max(first, 0), INT_MAX);
  real().closefrom(first);
}
// libc's standard streams do not ask us.
int duplicated(int from, int to) {
  FileCalls* calls = descriptor_calls();
  if (to < 0 || from == to || calls == nullptr) return to;
  if (to > STDERR_FILENO || !calls->has(from))
    calls->duplicated(from, to);
  else
    calls->give_back(from);
  return to;
}
int dup(int fd) noexcept { return duplicated(fd, real().dup(fd)); }
int dup2(int fd, int to) noexcept { return duplicated(fd, real().dup2(fd, to)); }
int dup3(int fd, int to, int flags) noexcept { return duplicated(fd, real().dup3(fd, to, flags)); }

// Locks of files: what was written under one is there for whoever has it next, and what others wrote meanwhile is seen
// (files/other_openers.h). What is locked is shared: a trial ends before that. `gets`: the call may get one; one is
// given up, in whole or part, where it does not.
template <class Call>
int with_lock(int fd, bool gets, bool gives_up, Call call) {
  FileCalls* calls = descriptor_calls();
  if (calls == nullptr) return call();
  if (gives_up) calls->lock_ends();
  const int result = call();
  const int saved_errno = errno;
  if (gets && result == 0) calls->lock_taken(fd);
  errno = saved_errno;
  return result;
}
int flock(int fd, int operation) noexcept {
  const int kind = operation & ~LOCK_NB;
  if (FileCalls* calls = descriptor_calls(); calls != nullptr && kind != LOCK_UN) calls->end_trial(fd);
  return with_lock(fd, kind != LOCK_UN, kind != LOCK_EX, [&] { return real().flock(fd, operation); });
}
// At the file's own place, which the kernel does not know.
int lockf(int fd, int command, off_t bytes) {
  if (FileCalls* calls = file_calls()) {
    if (command != F_ULOCK) calls->end_trial(fd);
    if (const int64_t place = calls->seek(fd, 0, SEEK_CUR); place >= 0)
      (void)real().lseek(fd, static_cast<off_t>(place), SEEK_SET);
  }
  return with_lock(fd, command == F_LOCK || command == F_TLOCK, command == F_ULOCK,
                   [&] { return real().lockf(fd, command, bytes); });
}

// A lock relative to the file's place or end, by our knowledge of them.
void make_absolute(FileCalls& calls, int fd, struct flock* lock) {
  if (lock->l_whence != SEEK_CUR && lock->l_whence != SEEK_END) return;
  const int64_t base = lock->l_whence == SEEK_CUR ? calls.seek(fd, 0, SEEK_CUR) : calls.size(fd);
  if (base < 0) return;
  lock->l_start += base;
  lock->l_whence = SEEK_SET;
}
int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void* argument = va_arg(more, void*);
  va_end(more);
  FileCalls* calls = file_calls();
  if (calls == nullptr) return real().fcntl(fd, command, argument);
  if (takes_a_lock(command)) {
    struct flock lock = *static_cast<struct flock*>(argument);
    calls->end_trial(fd);
    make_absolute(*calls, fd, &lock);
    const bool sets = command != F_GETLK && command != F_OFD_GETLK;
    const int result = with_lock(fd, sets && lock.l_type != F_UNLCK, sets && lock.l_type != F_WRLCK,
                                 [&] { return real().fcntl(fd, command, &lock); });
    if (command == F_GETLK || command == F_OFD_GETLK) *static_cast<struct flock*>(argument) = lock;
    return result;
  }
  const int result = real().fcntl(fd, command, argument);
  if (command == F_SETFL && result == 0)
    calls->flags_changed(fd, static_cast<int>(reinterpret_cast<intptr_t>(argument)));
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicated(fd, result) : result;
}

constexpr auto& fcntl64 = fcntl;

// ---- Places and sizes ----

off_t lseek(int fd, off_t offset, int whence) noexcept {
  return either(
      fd,
      [&](FileCalls& c) -> int64_t {
        if (whence != SEEK_DATA && whence != SEEK_HOLE) return c.seek(fd, offset, whence);
        if (const int64_t flushed = c.flush(fd); flushed != 0) return flushed;
        const off_t found = real().lseek(fd, offset, whence);
        return found < 0 ? -errno : c.seek(fd, found, SEEK_SET);
      },
      [&] { return real().lseek(fd, offset, whence); });
}
int ftruncate(int fd, off_t bytes) noexcept {
  return either(
      fd, [&](FileCalls& c) { return c.resize(fd, bytes); }, [&] { return real().ftruncate(fd, bytes); });
}
int truncate(const char* path, off_t bytes) noexcept {
  struct stat info;
  FileCalls* calls = file_calls();
  if (calls == nullptr || real().stat(path, &info) != 0) return real().truncate(path, bytes);
  int64_t result = calls->resize_file(info.st_dev, info.st_ino, bytes);
  if (result != kNotBuffered) return static_cast<int>(answer(result));
  const FileCalls::KernelCall call(*calls, info.st_dev, info.st_ino);
  if (call.is_over()) result = calls->resize_file(info.st_dev, info.st_ino, bytes);
  return result == kNotBuffered ? real().truncate(path, bytes) : static_cast<int>(answer(result));
}
int fsync(int fd) {
  return either(fd, [&](FileCalls& c) { return c.sync(fd, true); }, [&] { return real().fsync(fd); });
}
int fdatasync(int fd) {
  return either(fd, [&](FileCalls& c) { return c.sync(fd, false); }, [&] { return real().fdatasync(fd); });
}
int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags) {
  return either(
      fd, [&](FileCalls& c) { return c.flush(fd); },
      [&] { return real().sync_file_range(fd, offset, bytes, flags); });
}
// The kernel takes the space, of the file as it is; then the file is as long as the kernel says.
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  return either(
      fd,
      [&](FileCalls& c) -> int64_t {
        if (const int64_t flushed = c.flush(fd); flushed != 0) return flushed;
        if ((mode & ~FALLOC_FL_KEEP_SIZE) != 0) return -EOPNOTSUPP;
        if (real().fallocate(fd, mode, offset, bytes) != 0) return -errno;
        struct stat info;
        return real().fstat(fd, &info) == 0 ? c.extend(fd, info.st_size) : -errno;
      },
      [&] { return real().fallocate(fd, mode, offset, bytes); });
}
int posix_fallocate(int fd, off_t offset, off_t bytes) {
  if (FileCalls* calls = file_calls(); calls != nullptr && calls->is_buffered(fd)) {
    const int saved_errno = errno;
    const int error = fallocate(fd, 0, offset, bytes) == 0 ? 0 : errno;
    errno = saved_errno;
    return error;
  }
  FileCalls* calls = file_calls();
  if (calls == nullptr) return real().posix_fallocate(fd, offset, bytes);
  const FileCalls::KernelCall call(*calls, fd);
  return call.is_over() ? posix_fallocate(fd, offset, bytes) : real().posix_fallocate(fd, offset, bytes);
}

// ---- All files ----

void sync() noexcept {
  if (FileCalls* calls = file_calls()) calls->settle();
  real().sync();
}
int syncfs(int fd) noexcept {
  if (FileCalls* calls = file_calls()) calls->settle();
  return real().syncfs(fd);
}

// ---- Ends ----

// False: not all of what is buffered could be written, which has been said.
bool settle() {
  FileCalls* const calls = descriptor_calls();
  return calls == nullptr || calls->settle();
}
int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  settle();
  return real().execve(path, arguments, environment);
}
int execvpe(const char* path, char* const* arguments, char* const* environment) noexcept {
  settle();
  return real().execvpe(path, arguments, environment);
}
int fexecve(int fd, char* const* arguments, char* const* environment) noexcept {
  settle();
  return real().fexecve(fd, arguments, environment);
}
int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments,
                char* const* environment) noexcept {
  settle();
  return real().posix_spawn(child, path, actions, attributes, arguments, environment);
}
int posix_spawnp(pid_t* child, const char* name, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* arguments,
                 char* const* environment) noexcept {
  settle();
  return real().posix_spawnp(child, name, actions, attributes, arguments, environment);
}
int execvp(const char* name, char* const* arguments) noexcept {
  settle();
  return real().execvp(name, arguments);
}
int system(const char* command) {
  settle();
  return real().system(command);
}
__attribute__((noreturn)) void _exit(int code) {
  const bool is_whole = settle();
  real()._exit(exit_code_after(code, is_whole));
  __builtin_unreachable();
}

}  // namespace

FileCalls* descriptor_calls() {
  FileCalls* calls = file_calls();
  return calls != nullptr && ::getpid() == g_process.load_relaxed() ? calls : nullptr;
}

FileCalls* file_calls() { return InRuntime::here() ? nullptr : g_calls.load_acquire(); }

void use_file_calls(FileCalls* calls) {
  g_process.store_relaxed(::getpid());
  g_calls.store_release(calls);
  if (calls == nullptr) return;
  ::at_quick_exit([] {
    if (!settle()) real()._exit(kExitFailure);
  });
  static constexpr FileFunctions kTakenOver{
#define SPW_FILE(name) .name = name,
#include "abi/calls.def"
  };
  take_over_files(kTakenOver);
}

}  // namespace spw::libc

// For vfork.S: what is done before, and where to go on.
extern "C" __attribute__((visibility("hidden"))) void* spw_before_vfork() {
  if (spw::files::FileCalls* calls = spw::libc::file_calls()) calls->settle();
  return reinterpret_cast<void*>(spw::libc::real().vfork);
}
