// Input and output under their ordinary names: for code that was not recompiled and got a managed pointer. Plain
// pointers cost one compare.
#include "libc/entry.h"
#include "libc/io/transfers.h"

using namespace spw::libc;

SPW_ENTRY ssize_t read(int fd, void* buffer, size_t bytes) { return read_fd(fd, buffer, bytes); }
SPW_ENTRY ssize_t write(int fd, const void* buffer, size_t bytes) { return write_fd(fd, buffer, bytes); }
SPW_ENTRY ssize_t pread(int fd, void* buffer, size_t bytes, off_t offset) {
  return pread_fd(fd, buffer, bytes, offset);
}
SPW_ENTRY ssize_t pread64(int fd, void* buffer, size_t bytes, off_t offset) {
  return pread_fd(fd, buffer, bytes, offset);
}
SPW_ENTRY ssize_t pwrite(int fd, const void* buffer, size_t bytes, off_t offset) {
  return pwrite_fd(fd, buffer, bytes, offset);
}
SPW_ENTRY ssize_t pwrite64(int fd, const void* buffer, size_t bytes, off_t offset) {
  return pwrite_fd(fd, buffer, bytes, offset);
}
SPW_ENTRY ssize_t readv(int fd, const iovec* pieces, int count) { return readv_fd(fd, pieces, count); }
SPW_ENTRY ssize_t writev(int fd, const iovec* pieces, int count) { return writev_fd(fd, pieces, count); }
SPW_ENTRY ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) {
  return preadv_fd(fd, pieces, count, offset);
}
SPW_ENTRY ssize_t preadv64(int fd, const iovec* pieces, int count, off_t offset) {
  return preadv_fd(fd, pieces, count, offset);
}
SPW_ENTRY ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) {
  return pwritev_fd(fd, pieces, count, offset);
}
SPW_ENTRY ssize_t pwritev64(int fd, const iovec* pieces, int count, off_t offset) {
  return pwritev_fd(fd, pieces, count, offset);
}
SPW_ENTRY ssize_t preadv2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  return preadv2_fd(fd, pieces, count, offset, flags);
}
SPW_ENTRY ssize_t pwritev2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  return pwritev2_fd(fd, pieces, count, offset, flags);
}
SPW_ENTRY ssize_t preadv64v2(int fd, const iovec* pieces, int count, off64_t offset, int flags) {
  return preadv2_fd(fd, pieces, count, offset, flags);
}
SPW_ENTRY ssize_t pwritev64v2(int fd, const iovec* pieces, int count, off64_t offset, int flags) {
  return pwritev2_fd(fd, pieces, count, offset, flags);
}
SPW_ENTRY ssize_t recv(int fd, void* buffer, size_t bytes, int flags) {
  return receive(fd, buffer, bytes, flags, nullptr, nullptr);
}
SPW_ENTRY ssize_t recvfrom(int fd, void* buffer, size_t bytes, int flags, sockaddr* from,
                           socklen_t* from_bytes) {
  return receive(fd, buffer, bytes, flags, from, from_bytes);
}
SPW_ENTRY ssize_t recvmsg(int fd, msghdr* message, int flags) { return receive_message(fd, message, flags); }
SPW_ENTRY int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  return receive_messages(fd, messages, count, flags, timeout);
}
SPW_ENTRY int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  return send_messages(fd, messages, count, flags);
}
SPW_ENTRY ssize_t send(int fd, const void* buffer, size_t bytes, int flags) {
  return send_to(fd, buffer, bytes, flags, nullptr, 0);
}
SPW_ENTRY ssize_t sendto(int fd, const void* buffer, size_t bytes, int flags, const sockaddr* to,
                         socklen_t to_bytes) {
  return send_to(fd, buffer, bytes, flags, to, to_bytes);
}
SPW_ENTRY ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return send_message(fd, message, flags);
}
SPW_ENTRY ssize_t getrandom(void* buffer, size_t bytes, unsigned flags) {
  return random_bytes(buffer, bytes, flags);
}
