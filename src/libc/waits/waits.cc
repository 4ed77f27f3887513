#include "libc/waits/waits.h"

namespace spw::libc {

void* place_in_frame(void* object, size_t bytes, cache::Access access) {
  access::ManagedAccess& managed = *context()->access;
  const int saved_errno = errno;
  const access::Window window = managed.pin(reinterpret_cast<uintptr_t>(object), bytes, access);
  managed.unpin(window);
  errno = saved_errno;
  return window.bytes == bytes ? window.data : nullptr;
}

bool keep_in_place(const void* object, access::Window* window, cache::Access access) {
  const int saved_errno = errno;
  const bool is_kept = context()->access->keep(reinterpret_cast<uintptr_t>(object), window, access);
  errno = saved_errno;
  return is_kept;
}

void let_go(const access::Window& window) {
  const int saved_errno = errno;
  context()->access->let_go(window);
  errno = saved_errno;
}

}  // namespace spw::libc
