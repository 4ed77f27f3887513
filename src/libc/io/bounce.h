// Native buffers between the kernel and managed memory.
//
// A transfer on a managed buffer goes through a bounce buffer, not through pinned windows: nothing is pinned while a
// call blocks, how much arrived is known before a block is touched (so whole blocks are overwritten without being read
// first), and a datagram or a record of up to a buffer's size takes one call, as it must.
//
// Threads: any; a Bounce belongs to one thread. Limits: kBounceBuffers pooled buffers of kBounceBytes, mapped when
// first needed; more threads at a time, and larger requests up to kBounceBytesMax, take memory of their own.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>

#include "libc/io/descriptors.h"

namespace spw::libc {

inline constexpr size_t kBounceBytes = 128 * 1024;
inline constexpr size_t kBounceBytesMax = 1024 * 1024;
inline constexpr unsigned kBounceBuffers = 16;

class Bounce {
 public:
  // At least min(bytes_wanted, kBounceBytes) bytes, page aligned, or all of bytes_wanted if `whole`. bytes() is 0 when
  // there is no memory.
  explicit Bounce(size_t bytes_wanted, bool whole = false);
  // All of it, in pages that nobody has afterwards: the kernel may go on reading them (MSG_ZEROCOPY).
  struct KeptByKernel {};
  Bounce(size_t bytes_wanted, KeptByKernel);
  ~Bounce();
  Bounce(const Bounce&) = delete;
  Bounce& operator=(const Bounce&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  int pooled_ = -1;
  bool is_mapped_ = false;
};

// The pieces of a scattered buffer, any of which may be managed, as one run of bytes.
class Scatter {
 public:
  explicit Scatter(std::span<const iovec> pieces) : pieces_(pieces) {}
  size_t bytes() const;
  // Copies between the run from `offset` on and native memory.
  void put(size_t offset, const std::byte* from, size_t bytes) const {
    copy(offset, const_cast<std::byte*>(from), bytes, true);
  }
  void get(size_t offset, std::byte* to, size_t bytes) const { copy(offset, to, bytes, false); }

 private:
  void copy(size_t offset, std::byte* native, size_t bytes, bool in) const;
  std::span<const iovec> pieces_;
};

// Output: call(data, bytes, done) -> bytes or -1. `is_kept`: the kernel may read the bytes later, too.
template <class Call>
ssize_t drain(const Scatter& from, bool whole, Call call, bool is_kept = false) {
  size_t total = from.bytes();
  const Bounce bounce = is_kept ? Bounce(total, Bounce::KeptByKernel()) : Bounce(total, whole);
  if (bounce.bytes() == 0 && total != 0) return fail(ENOMEM);
  size_t done = 0;
  do {
    size_t wanted = std::min(total - done, bounce.bytes());
    from.get(done, bounce.data(), wanted);
    ssize_t put = call(bounce.data(), wanted, done);
    if (put < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;
    done += static_cast<size_t>(put);
    if (static_cast<size_t>(put) < wanted) break;
  } while (done < total);
  return static_cast<ssize_t>(done);
}

}  // namespace spw::libc
