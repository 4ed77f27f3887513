// The mmap family under its ordinary names: for code that was not recompiled and got a managed pointer. Plain pointers
// cost one compare.
#include <errno.h>
#include <stdarg.h>

#include "libc/alloc/rules.h"
#include "libc/entry.h"
#include "libc/io/buffered.h"
#include "libc/io/descriptors.h"
#include "libc/managed.h"
#include "libc/map/advice.h"
#include "libc/map/mapped_reads.h"
#include "libc/map/mapping.h"
#include "libc/map/marks.h"
#include "libc/map/rights.h"
#include "libc/real.h"

using namespace spw::libc;

SPW_ENTRY void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if (!manages_any_code()) {
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
// Allocators that grow the heap by themselves turn to mmap when it cannot grow, and get managed memory there. (libc's
// own does not call these, and small allocations have the quota.)
SPW_ENTRY void* sbrk(intptr_t bytes) noexcept {
  if (bytes > 0 && manages_any_code() && is_native_over_quota()) {
    errno = ENOMEM;
    return reinterpret_cast<void*>(-1);
  }
  return real().sbrk(bytes);
}
SPW_ENTRY int brk(void* end) noexcept {
  if (end <= real().sbrk(0) || !manages_any_code() || !is_native_over_quota()) return real().brk(end);
  errno = ENOMEM;
  return -1;
}
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
SPW_ENTRY int pkey_mprotect(void* address, size_t bytes, int protection, int key) noexcept {
  return protect_with_key(address, bytes, protection, key);
}
SPW_ENTRY int mlock(const void* address, size_t bytes) noexcept { return lock_pages(address, bytes, 0); }
SPW_ENTRY int mlock2(const void* address, size_t bytes, unsigned flags) noexcept {
  return lock_pages(address, bytes, flags);
}
SPW_ENTRY int munlock(const void* address, size_t bytes) noexcept { return unlock_pages(address, bytes); }
SPW_ENTRY int mlockall(int flags) noexcept { return lock_all(flags); }
SPW_ENTRY int munlockall() noexcept { return unlock_all(); }
SPW_ENTRY int mincore(void* address, size_t bytes, unsigned char* out) noexcept {
  return resident_pages(address, bytes, out);
}
SPW_ENTRY void* shmat(int segment, const void* address, int flags) noexcept {
  if (!is_managed(address)) {
    shmid_ds info;
    if ((flags & SHM_REMAP) != 0 && ::shmctl(segment, IPC_STAT, &info) == 0)
      forget_replaced(address, info.shm_segsz);
    return real().shmat(segment, address, flags);
  }
  return reinterpret_cast<void*>(fail(EINVAL));  // nothing of the kernel's lies there
}
