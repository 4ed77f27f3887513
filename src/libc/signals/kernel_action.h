// The kernel's own struct sigaction, which libc's is not.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>

namespace spw::libc {

inline constexpr size_t kKernelMaskBytes = 8;

struct KernelAction {
  void (*handler)(int);
  uint64_t flags;
  void (*restorer)();
  uint64_t mask;
};

}  // namespace spw::libc
