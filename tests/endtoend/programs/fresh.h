// Managed memory that the kernel has to be helped to: nobody has touched it since it was evicted, or ever.
#ifndef FRESH_H
#define FRESH_H

#include <stdlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

namespace {

// More than the cap, swept again and again.
std::vector<char>& work() {
  static std::vector<char> bytes(12 << 20, 1);
  return bytes;
}
[[maybe_unused]] void evict() {
  for (size_t at = 0; at < work().size(); at += 4096) ++work()[at];
}

// Room of its own page, never touched.
template <class T>
T* fresh(size_t count = 1) {
  void* room = std::aligned_alloc(4096, (sizeof(T) * count + 4095) / 4096 * 4096 + 4096);
  return static_cast<T*>(room);
}
template <class T>
T* holding(const T& value) {
  return new (fresh<T>()) T(value);
}

// Results are printed, with the error where there is one.
[[maybe_unused]] void say(const char* name, long result) {
  if (result < 0)
    std::printf("%s failed: %s\n", name, std::strerror(errno));
  else
    std::printf("%s %ld\n", name, result);
}

}  // namespace

#endif
