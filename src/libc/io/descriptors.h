// What a file descriptor is, as far as cutting a transfer into pieces depends on it. errno is kept.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

namespace spw::libc {

inline bool is_regular(int fd) {
  struct stat info;
  int saved_errno = errno;
  bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  errno = saved_errno;
  return regular;
}

// Opened with O_DIRECT: its transfers go between the device and the pages themselves.
inline bool is_direct(int fd) {
  const int saved_errno = errno, flags = fcntl(fd, F_GETFL);
  errno = saved_errno;
  return flags >= 0 && (flags & O_DIRECT) != 0;
}

// A socket whose reads and writes are messages of their own.
inline bool keeps_messages(int fd) {
  int type = 0, saved_errno = errno;
  socklen_t bytes = sizeof(type);
  bool socket = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0;
  errno = saved_errno;
  return socket && type != SOCK_STREAM;
}

// Commands of fcntl() whose argument is a lock.
inline bool takes_a_lock(int command) {
  return command == F_GETLK || command == F_SETLK || command == F_SETLKW || command == F_OFD_GETLK ||
         command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

inline bool more_is_there(int fd) {
  pollfd wait{fd, POLLIN, 0};
  int saved_errno = errno;
  bool ready = poll(&wait, 1, 0) == 1 && (wait.revents & POLLIN) != 0;
  errno = saved_errno;
  return ready;
}

// For a libc function's own result.
inline ssize_t fail(int error) {
  errno = error;
  return -1;
}

}  // namespace spw::libc
