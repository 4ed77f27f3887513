// What a thread does between two looks at a word that another running thread is about to change.
#pragma once

namespace spw::platform {

inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace spw::platform
