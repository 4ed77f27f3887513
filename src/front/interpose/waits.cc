#include "front/interpose/waits.h"

namespace spw::interpose {

void* place_in_frame(void* object, size_t bytes, cache::Access access) {
  if (!is_in_frames(object)) return nullptr;
  region::ManagedAccess* access_to = context()->access;
  const int saved_errno = errno;
  const region::Window window = access_to->pin(reinterpret_cast<uintptr_t>(object), bytes, access);
  access_to->unpin(window);
  errno = saved_errno;
  return window.bytes == bytes ? window.data : nullptr;
}

}  // namespace spw::interpose
