// What requests of ioctl(2) are about. Threads: any. Async-signal-safe.
#pragma once

#include <cstddef>

namespace spw::libc {

// Of what the argument of an ioctl points to; 0: unknown, or it is no pointer.
size_t ioctl_bytes(unsigned long request, const void* argument);

}  // namespace spw::libc
