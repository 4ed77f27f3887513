#include "front/interpose/waits.h"

namespace spw::interpose {

void* place_in_frame(void* object, size_t bytes, cache::Access access) {
  const InterposeContext* c = context();
  if (c == nullptr || c->in_place) return nullptr;
  const int saved_errno = errno;
  const region::Window window = c->access->pin(reinterpret_cast<uintptr_t>(object), bytes, access);
  c->access->unpin(window);
  errno = saved_errno;
  return window.bytes == bytes ? window.data : nullptr;
}

}  // namespace spw::interpose
