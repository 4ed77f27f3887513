// How much of memory that the program names, and that is the kernel's, a system call could read or store to: asked of
// the kernel, page by page, without a fault and without a change of a byte.
//
// Threads: any; what others unmap meanwhile is seen or not. Where the kernel forbids asking, all of it is reachable.
#pragma once

#include <cstddef>

namespace spw::platform {

// Bytes from `p` on.
size_t reachable_bytes(const void* p, size_t bytes, bool is_store);

}  // namespace spw::platform
