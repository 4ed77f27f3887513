// Random bytes of the kernel's, good enough for keys.
//
// Threads: any. Errors: a kernel that has none (before 3.17) is a check failure.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "base/check.h"

namespace spw::platform {

// Up to 256 bytes, which come whole. By its number, since the program's own getrandom() may be ours.
inline void draw_random(void* to, size_t bytes) {
  SPW_CHECK(::syscall(SYS_getrandom, to, bytes, 0) == static_cast<long>(bytes));
}

}  // namespace spw::platform
