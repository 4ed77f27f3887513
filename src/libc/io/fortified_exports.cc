// Fortified system calls (fortified.h), under their ordinary names. No header declares them.
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libc/bytes/fortified.h"
#include "libc/entry.h"

using namespace spw::libc;

SPW_ENTRY ssize_t __read_chk(int fd, void* buffer, size_t bytes, size_t room) {
  return read(fd, buffer, fitting(bytes, room));
}
SPW_ENTRY ssize_t __pread_chk(int fd, void* buffer, size_t bytes, off_t offset, size_t room) {
  return pread(fd, buffer, fitting(bytes, room), offset);
}
SPW_ENTRY ssize_t __pread64_chk(int fd, void* buffer, size_t bytes, off_t offset, size_t room) {
  return pread(fd, buffer, fitting(bytes, room), offset);
}
SPW_ENTRY ssize_t __recv_chk(int fd, void* buffer, size_t bytes, size_t room, int flags) {
  return recv(fd, buffer, fitting(bytes, room), flags);
}
SPW_ENTRY ssize_t __recvfrom_chk(int fd, void* buffer, size_t bytes, size_t room, int flags, sockaddr* from,
                                 socklen_t* from_bytes) {
  return recvfrom(fd, buffer, fitting(bytes, room), flags, from, from_bytes);
}
SPW_ENTRY ssize_t __readlink_chk(const char* path, char* out, size_t bytes, size_t room) {
  return readlink(path, out, fitting(bytes, room));
}
SPW_ENTRY ssize_t __readlinkat_chk(int directory, const char* path, char* out, size_t bytes, size_t room) {
  return readlinkat(directory, path, out, fitting(bytes, room));
}
SPW_ENTRY char* __getcwd_chk(char* out, size_t bytes, size_t room) {
  return getcwd(out, fitting(bytes, room));
}
SPW_ENTRY char* __realpath_chk(const char* path, char* out, size_t room) {
  fitting(PATH_MAX, room);
  return realpath(path, out);
}
SPW_ENTRY int __poll_chk(pollfd* list, nfds_t count, int timeout_ms, size_t room) {
  expect_room(count, sizeof *list, room);
  return poll(list, count, timeout_ms);
}
SPW_ENTRY int __getgroups_chk(int count, gid_t* out, size_t room) {
  if (count > 0) expect_room(static_cast<size_t>(count), sizeof *out, room);
  return getgroups(count, out);
}
SPW_ENTRY size_t __fread_chk(void* buffer, size_t room, size_t bytes, size_t count, FILE* file) {
  expect_room(count, bytes, room);
  return fread(buffer, bytes, count, file);
}
SPW_ENTRY size_t __fread_unlocked_chk(void* buffer, size_t room, size_t bytes, size_t count, FILE* file) {
  expect_room(count, bytes, room);
  return fread_unlocked(buffer, bytes, count, file);
}
