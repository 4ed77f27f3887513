#include "front/interpose/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "front/interpose/file_calls.h"
#include "front/interpose/real.h"

namespace spw::interpose {

namespace {

// A stream's functions, by way of its descriptor.
int fd_of(void* cookie) { return static_cast<int>(reinterpret_cast<intptr_t>(cookie)); }
ssize_t stream_read(void* cookie, char* buffer, size_t bytes) {
  return real().read(fd_of(cookie), buffer, bytes);
}
ssize_t stream_write(void* cookie, const char* buffer, size_t bytes) {
  const ssize_t wrote = real().write(fd_of(cookie), buffer, bytes);
  return wrote < 0 ? 0 : wrote;  // what a cookie's error is
}
int stream_seek(void* cookie, off64_t* offset, int whence) {
  const off_t at = real().lseek(fd_of(cookie), *offset, whence);
  if (at < 0) return -1;
  *offset = at;
  return 0;
}
int stream_close(void* cookie) { return real().close(fd_of(cookie)); }

// Users ask for its descriptor, and C++ streams read and write that.
FILE* buffered_stream(int fd, const char* mode) {
  FILE* file = ::fopencookie(reinterpret_cast<void*>(static_cast<intptr_t>(fd)), mode,
                             {&stream_read, &stream_write, &stream_seek, &stream_close});
  if (file != nullptr) file->_fileno = fd;
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
}  // namespace

FILE* open_stream(const char* path, const char* mode) {
  const int flags = flags_of(mode);
  if (flags < 0) return libc().fopen(path, mode);  // which says why
  // By itself, since it may wait (a pipe's other end), and signals with it if this thread were in the runtime.
  const int fd = libc().open(path, flags, 0666);
  if (fd < 0) return nullptr;
  if (FileCalls* calls = file_calls()) calls->opened(fd, flags);
  FILE* file = stream_of_descriptor(fd, mode);
  if (file == nullptr) {
    const int saved_errno = errno;
    real().close(fd);
    errno = saved_errno;
  }
  return file;
}

FILE* stream_of_descriptor(int fd, const char* mode) {
  FileCalls* calls = file_calls();
  const bool is_buffered = calls != nullptr && calls->is_buffered(fd);
  InRuntime native;
  return is_buffered ? buffered_stream(fd, mode) : libc().fdopen(fd, mode);
}

FILE* reopen_stream(const char* path, const char* mode, FILE* file) {
  if (FileCalls* calls = file_calls())
    if (const int fd = ::fileno(file); fd >= 0) calls->close(fd);
  return libc().freopen(path, mode, file);
}

FILE* open_command(const char* command, const char* mode) {
  if (FileCalls* calls = file_calls()) calls->settle();
  InRuntime native;
  return libc().popen(command, mode);
}

}  // namespace spw::interpose
