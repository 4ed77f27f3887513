// The mmap family, input and output under their ordinary names: for code that was not recompiled and got a managed
// pointer. Plain pointers cost one compare.
#include <errno.h>
#include <stdarg.h>

#include "front/interpose/allocate.h"
#include "front/interpose/context.h"
#include "front/interpose/entry.h"
#include "front/interpose/file_calls.h"
#include "front/interpose/mapping.h"
#include "front/interpose/real.h"
#include "front/interpose/transfers.h"

using namespace spw::interpose;

SPW_ENTRY void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if (!whole_process_maps(bytes)) {
    (void)is_the_kernels_to_map(flags, fd);
    return real().mmap(address, bytes, protection, flags, fd, offset);
  }
  return map(address, bytes, protection, flags, fd, offset);
}
SPW_ENTRY void* mmap64(void* address, size_t bytes, int protection, int flags, int fd,
                       off_t offset) noexcept {
  return mmap(address, bytes, protection, flags, fd, offset);
}
SPW_ENTRY int munmap(void* address, size_t bytes) noexcept { return unmap(address, bytes); }
SPW_ENTRY void* mremap(void* address, size_t old_bytes, size_t new_bytes, int flags, ...) noexcept {
  va_list more;
  va_start(more, flags);
  void* new_address = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void*) : nullptr;
  va_end(more);
  return remap(address, old_bytes, new_bytes, flags, new_address);
}
SPW_ENTRY int msync(void* address, size_t bytes, int flags) { return sync_mapping(address, bytes, flags); }
SPW_ENTRY int madvise(void* address, size_t bytes, int advice) noexcept {
  return advise_mapping(address, bytes, advice);
}
SPW_ENTRY int posix_madvise(void* address, size_t bytes, int advice) noexcept {
  // POSIX_MADV_DONTNEED must not lose anything, so it is no advice worth taking; the others have madvise's numbers.
  if (advice == POSIX_MADV_DONTNEED) return 0;
  int saved_errno = errno, error = advise_mapping(address, bytes, advice) == 0 ? 0 : errno;
  errno = saved_errno;
  return error;
}
SPW_ENTRY int mprotect(void* address, size_t bytes, int protection) noexcept {
  return protect_mapping(address, bytes, protection);
}
// Managed memory is not the kernel's to lock: what is hot stays cached, and that is all there is to promise.
SPW_ENTRY int mlock(const void* address, size_t bytes) noexcept {
  return is_managed(address) ? 0 : real().mlock(address, bytes);
}
SPW_ENTRY int munlock(const void* address, size_t bytes) noexcept {
  return is_managed(address) ? 0 : real().munlock(address, bytes);
}

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
