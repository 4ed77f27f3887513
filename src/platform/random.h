// Random bytes of the kernel's, good enough for keys.
//
// Threads: any. Errors: a kernel that has none (before 3.17) ends the process (base/need.h).
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "base/need.h"

namespace spw::platform {

// Up to 256 bytes, which come whole. By its number, since the program's own getrandom() may be ours.
inline void draw_random(void* to, size_t bytes) {
  long got;
  do {
    got = ::syscall(SYS_getrandom, to, bytes, 0);
  } while (got < 0 && (errno == EINTR || errno == EAGAIN));
  need(got == static_cast<long>(bytes), "get random bytes from the kernel");
}

}  // namespace spw::platform
