// The kernel's memory and transfer calls without libc's wrappers: under these names libspillway.so exports versions for
// the program, which must not be what the runtime itself calls. (It exports syscall(), too, which passes on what is
// called inside of the runtime, and what has no managed argument.)
//
// As the wrappers: -1 (MAP_FAILED) and errno. Threads: any. Async-signal-safe.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>

namespace spw::platform::raw {

inline void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}
inline int munmap(void* address, size_t bytes) {
  return static_cast<int>(::syscall(SYS_munmap, address, bytes));
}
inline int mprotect(void* address, size_t bytes, int protection) {
  return static_cast<int>(::syscall(SYS_mprotect, address, bytes, protection));
}
inline void* mremap(void* from, size_t bytes, size_t new_bytes, int flags, void* to) {
  return reinterpret_cast<void*>(::syscall(SYS_mremap, from, bytes, new_bytes, flags, to));
}
inline int madvise(void* address, size_t bytes, int advice) {
  return static_cast<int>(::syscall(SYS_madvise, address, bytes, advice));
}
inline int msync(void* address, size_t bytes, int flags) {
  return static_cast<int>(::syscall(SYS_msync, address, bytes, flags));
}
inline int mincore(void* address, size_t bytes, unsigned char* present) {
  return static_cast<int>(::syscall(SYS_mincore, address, bytes, present));
}
// Of one piece: the kernel need not copy a list of pieces first.
inline ssize_t pread(int fd, void* data, size_t bytes, off_t offset) {
  return ::syscall(SYS_pread64, fd, data, bytes, offset);
}
inline ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  return ::syscall(SYS_pwrite64, fd, data, bytes, offset);
}
// The upper half of the offset, the last argument, is for 32-bit machines.
inline ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) {
  return ::syscall(SYS_preadv, fd, pieces, count, offset, 0L);
}
inline ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) {
  return ::syscall(SYS_pwritev, fd, pieces, count, offset, 0L);
}

}  // namespace spw::platform::raw
