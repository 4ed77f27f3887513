#include "libc/stdio/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "libc/io/buffered.h"
#include "libc/real.h"

namespace spw::libc {

namespace {

// A stream's functions, by way of its descriptor.
int fd_of(void* cookie) { return static_cast<int>(reinterpret_cast<intptr_t>(cookie)); }
ssize_t stream_read(void* cookie, char* buffer, size_t bytes) {
  return files_or_real().read(fd_of(cookie), buffer, bytes);
}
ssize_t stream_write(void* cookie, const char* buffer, size_t bytes) {
  const ssize_t wrote = files_or_real().write(fd_of(cookie), buffer, bytes);
  return wrote < 0 ? 0 : wrote;  // what a cookie's error is
}
int stream_seek(void* cookie, off64_t* offset, int whence) {
  const off_t at = files_or_real().lseek(fd_of(cookie), *offset, whence);
  if (at < 0) return -1;
  *offset = at;
  return 0;
}
// Ours that are open, by descriptor.
class Streams {
 public:
  void add(int fd, FILE* file) {
    std::lock_guard lock(mutex_);
    open_.push_back({fd, file});
  }
  void remove(int fd) {
    std::lock_guard lock(mutex_);
    std::erase_if(open_, [&](const Stream& each) { return each.fd == fd; });
  }
  bool has(const FILE* file) {
    std::lock_guard lock(mutex_);
    return std::any_of(open_.begin(), open_.end(), [&](const Stream& each) { return each.file == file; });
  }

 private:
  struct Stream {
    int fd;
    FILE* file;
  };
  std::mutex mutex_;
  std::vector<Stream> open_;
};
Streams& streams() {
  static auto* streams = new Streams;
  return *streams;
}

int stream_close(void* cookie) {
  {
    InRuntime native;
    streams().remove(fd_of(cookie));
  }
  return files_or_real().close(fd_of(cookie));
}

// Users ask for its descriptor, and C++ streams read and write that.
FILE* buffered_stream(int fd, const char* mode) {
  FILE* file = ::fopencookie(reinterpret_cast<void*>(static_cast<intptr_t>(fd)), mode,
                             {&stream_read, &stream_write, &stream_seek, &stream_close});
  if (file == nullptr) return nullptr;
  file->_fileno = fd;
  streams().add(fd, file);
  return file;
}
// The flags of open(2) for a mode of fopen(3); -1: it is none.
int flags_of(const char* mode) {
  const bool updates = strchr(mode, '+') != nullptr;
  const int both = updates ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  const int more = (strchr(mode, 'x') ? O_EXCL : 0) | (strchr(mode, 'e') ? O_CLOEXEC : 0);
  switch (mode[0]) {
    case 'r':
      return both | more;
    case 'w':
      return both | O_CREAT | O_TRUNC | more;
    case 'a':
      return both | O_CREAT | O_APPEND | more;
    default:
      return -1;
  }
}

// Where it reads, too, it begins at the beginning.
bool begins_at_end(const char* mode) { return mode[0] == 'a' && strchr(mode, '+') == nullptr; }
}  // namespace

FILE* open_stream(const char* path, const char* mode) {
  const int flags = strstr(mode, ",ccs=") != nullptr ? -1 : flags_of(mode);
  if (flags < 0) return real().fopen(path, mode);  // which says why, or knows encodings
  // By itself, since it may wait (a pipe's other end), and signals with it if this thread were in the runtime.
  const int fd = real().open(path, flags, 0666);
  if (fd < 0) return nullptr;
  if (FileCalls* calls = descriptor_calls()) calls->opened(fd, flags, path);
  if (begins_at_end(mode))
    files_or_real().lseek(fd, 0, SEEK_END);  // fdopen() does so only where it is what makes the file append
  FILE* file = stream_of_descriptor(fd, mode);
  if (file == nullptr) {
    const int saved_errno = errno;
    files_or_real().close(fd);
    errno = saved_errno;
  }
  return file;
}

FILE* stream_of_descriptor(int fd, const char* mode) {
  FileCalls* calls = file_calls();
  const bool is_buffered = calls != nullptr && calls->has(fd);
  if (is_buffered && mode[0] == 'a') {
    const int flags = files_or_real().fcntl(fd, F_GETFL);
    if ((flags & O_APPEND) == 0) {
      files_or_real().fcntl(fd, F_SETFL, flags | O_APPEND);
      if (begins_at_end(mode)) files_or_real().lseek(fd, 0, SEEK_END);
    }
  }
  InRuntime native;
  return is_buffered ? buffered_stream(fd, mode) : real().fdopen(fd, mode);
}

namespace {
// What libc's freopen() cannot do: one of ours goes on with its
// functions, and its descriptor stands for the other file.
FILE* reopen_ours(const char* path, const char* mode, FILE* file) {
  constexpr int kNoReads = 0x4, kNoWrites = 0x8;  // of FILE::_flags
  const int flags = flags_of(mode), fd = ::fileno(file);
  char same[48];  // without a path: the same file, in another mode
  snprintf(same, sizeof same, "/proc/thread-self/fd/%d", fd);
  const int other = flags < 0 ? -1 : files_or_real().open(path == nullptr ? same : path, flags, 0666);
  if (other < 0 || files_or_real().dup3(other, fd, flags & O_CLOEXEC) < 0) {
    const int error = flags < 0 ? EINVAL : errno;
    ::fclose(file);
    if (other >= 0) files_or_real().close(other);
    errno = error;
    return nullptr;
  }
  files_or_real().close(other);
  if (begins_at_end(mode)) files_or_real().lseek(fd, 0, SEEK_END);
  ::clearerr(file);
  const int denied = (flags & O_ACCMODE) == O_RDONLY   ? kNoWrites
                     : (flags & O_ACCMODE) == O_WRONLY ? kNoReads
                                                       : 0;
  file->_flags = (file->_flags & ~(kNoReads | kNoWrites)) | denied;
  return file;
}
}  // namespace

FILE* reopen_stream(const char* path, const char* mode, FILE* file) {
  if (FileCalls* calls = descriptor_calls()) {
    ::fflush(file);
    bool is_ours;
    {
      InRuntime native;
      is_ours = streams().has(file);
    }
    if (is_ours) return reopen_ours(path, mode, file);
    if (const int fd = ::fileno(file); fd >= 0) calls->close(fd);
    struct stat info;
    if (path != nullptr && real().stat(path, &info) == 0) (void)calls->flush_file(info.st_dev, info.st_ino);
  }
  FILE* const reopened = real().freopen(path, mode, file);
  if (FileCalls* calls = descriptor_calls(); calls != nullptr && reopened != nullptr)
    calls->opened_by_libc(::fileno(reopened), flags_of(mode));
  return reopened;
}

FILE* open_command(const char* command, const char* mode) {
  if (FileCalls* calls = descriptor_calls()) calls->settle();
  InRuntime native;
  return real().popen(command, mode);
}

}  // namespace spw::libc
