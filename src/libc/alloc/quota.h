// How many bytes of native memory are live, for the quota: counted a thread at a time, summed now and then.
//
//     native_bytes() = bytes of counted allocations - bytes of counted frees, to within kQuotaBatchBytes a live thread
//
// Threads: any; a thread's remainder is added at its end. Lifetime: the process.
#pragma once

#include <cstdint>

namespace spw::libc {

inline constexpr int64_t kQuotaBatchBytes = 16 * 1024;

namespace detail {
extern constinit thread_local int64_t native_bytes_pending __attribute__((tls_model("initial-exec")));
extern constinit thread_local bool native_bytes_registered __attribute__((tls_model("initial-exec")));
void flush_native_bytes();
}  // namespace detail

// `bytes` as malloc_usable_size tells them, negative for a free.
inline void count_native_bytes(int64_t bytes) {
  int64_t pending = detail::native_bytes_pending += bytes;
  if (pending > kQuotaBatchBytes || pending < -kQuotaBatchBytes || !detail::native_bytes_registered)
      [[unlikely]]
    detail::flush_native_bytes();
}

// 0 when frees were counted before their allocations were.
uint64_t native_bytes();

}  // namespace spw::libc
