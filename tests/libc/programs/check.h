// The smallest test harness there is, for programs that are
// recompiled: nothing of it is instrumented away or allocated.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

inline int g_failures = 0;

#define EXPECT(condition)                                                                    \
  do {                                                                                       \
    errno = 0;                                                                               \
    if (!(condition)) {                                                                      \
      ++g_failures;                                                                          \
      std::fprintf(stderr, "%s:%d: %s does not hold (%s)\n", __FILE__, __LINE__, #condition, \
                   std::strerror(errno));                                                    \
    }                                                                                        \
  } while (false)

// A value on the heap, which with SPILLWAY_QUOTA=0 means in managed memory.
template <class T>
struct OnHeap {
  T* p = static_cast<T*>(std::calloc(1, sizeof(T)));
  ~OnHeap() { std::free(p); }
  OnHeap() = default;
  OnHeap(const OnHeap&) = delete;
  OnHeap& operator=(const OnHeap&) = delete;
  T* operator->() { return p; }
  T& operator*() { return *p; }
  operator T*() { return p; }
};

inline char* heap_text(const char* text) { return strdup(text); }
inline bool is_managed(const void* p) { return reinterpret_cast<size_t>(p) >> 44 == 2; }
