#include "libc/alloc/quota.h"

#include <pthread.h>

#include "base/atomic.h"

namespace spw::libc {

namespace {

Atomic<int64_t> total{0};
Atomic<bool> key_ready{false};
pthread_key_t key;

void thread_ended(void*) {
  // What later destructors of this thread free registers it again.
  detail::native_bytes_registered = false;
  total.fetch_add_relaxed(detail::native_bytes_pending);
  detail::native_bytes_pending = 0;
}

// Early, so that the key is one of the first 32, whose values a thread keeps without an allocation.
__attribute__((constructor)) void make_key() {
  if (pthread_key_create(&key, thread_ended) == 0) key_ready.store_release(true);
}

}  // namespace

namespace detail {

constinit thread_local int64_t native_bytes_pending = 0;
constinit thread_local bool native_bytes_registered = false;

void flush_native_bytes() {
  total.fetch_add_relaxed(native_bytes_pending);
  native_bytes_pending = 0;
  if (!native_bytes_registered && key_ready.load_acquire()) {
    native_bytes_registered = true;
    pthread_setspecific(key, &native_bytes_pending);
  }
}

}  // namespace detail

uint64_t native_bytes() {
  int64_t bytes = total.load_relaxed() + detail::native_bytes_pending;
  return bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
}

}  // namespace spw::libc
