// For the thread sanitizer alone: a library that maps and unmaps by system calls of its own (liburing) hides from it
// that the kernel gave the addresses from one thread to another, and it takes the second one's stores for a race with
// the first one's. Whoever unmaps calls leaves_addresses() before, whoever maps calls got_addresses() after: what one
// thread did before it left is then in order before what another does since it got. Nothing in other builds.
// Threads: any.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define SPW_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SPW_THREAD_SANITIZER 1
#endif
#endif

#ifdef SPW_THREAD_SANITIZER
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace spw {

#ifdef SPW_THREAD_SANITIZER
inline char reused_addresses;
inline void leaves_addresses() { __tsan_release(&reused_addresses); }
inline void got_addresses() { __tsan_acquire(&reused_addresses); }
#else
inline void leaves_addresses() {}
inline void got_addresses() {}
#endif

}  // namespace spw
