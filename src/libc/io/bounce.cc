#include "libc/io/bounce.h"

#include <algorithm>

#include "base/atomic.h"
#include "base/units.h"
#include "libc/managed.h"
#include "libc/real.h"

namespace spw::libc {

namespace {

Atomic<uint32_t> busy{0};  // bit i: buffer i is in use
Atomic<std::byte*> pool{nullptr};

std::byte* pooled_buffers() {
  std::byte* base = pool.load_acquire();
  if (base != nullptr) return base;
  void* mapped = real().mmap(nullptr, kBounceBuffers * kBounceBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (pool.cas_strong_acq_rel(base, static_cast<std::byte*>(mapped))) return static_cast<std::byte*>(mapped);
  real().munmap(mapped, kBounceBuffers * kBounceBytes);
  return base;
}

// A free buffer's number, now this thread's, or -1.
int take_pooled() {
  uint32_t seen = busy.load_relaxed();
  while (seen != (uint32_t{1} << kBounceBuffers) - 1) {
    int index = __builtin_ctz(~seen);
    // Pairs with the release in ~Bounce: the former user is done with the bytes.
    if (busy.cas_weak_acquire(seen, seen | uint32_t{1} << index)) return index;
  }
  return -1;
}

}  // namespace

Bounce::Bounce(size_t bytes_wanted, bool whole) {
  if (!whole) bytes_wanted = std::min(bytes_wanted, kBounceBytes);
  if (bytes_wanted <= kBounceBytes) {
    std::byte* base = pooled_buffers();
    if (base != nullptr && (pooled_ = take_pooled()) >= 0) {
      data_ = base + static_cast<size_t>(pooled_) * kBounceBytes;
      bytes_ = kBounceBytes;
      return;
    }
  }
  data_ = static_cast<std::byte*>(libc_memalign(kMmuPageBytes, std::max<size_t>(bytes_wanted, 1)));
  bytes_ = data_ == nullptr ? 0 : bytes_wanted;
}

Bounce::Bounce(size_t bytes_wanted, KeptByKernel) {
  void* mapped = real().mmap(nullptr, std::max<size_t>(bytes_wanted, 1), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return;
  data_ = static_cast<std::byte*>(mapped);
  bytes_ = bytes_wanted;
  is_mapped_ = true;
}

Bounce::~Bounce() {
  if (pooled_ >= 0)
    busy.fetch_and_acq_rel(~(uint32_t{1} << pooled_));
  else if (is_mapped_)
    real().munmap(data_, std::max<size_t>(bytes_, 1));
  else
    libc_free(data_);
}

size_t Scatter::bytes() const {
  size_t total = 0;
  for (const iovec& piece : pieces_) total += piece.iov_len;
  return total;
}

void Scatter::copy(size_t offset, std::byte* native, size_t bytes, bool in) const {
  for (const iovec& piece : pieces_) {
    if (offset >= piece.iov_len) {
      offset -= piece.iov_len;
      continue;
    }
    size_t step = std::min(bytes, piece.iov_len - offset);
    auto* here = static_cast<std::byte*>(piece.iov_base) + offset;
    in ? copy_bytes(here, native, step) : copy_bytes(native, here, step);
    native += step;
    bytes -= step;
    offset = 0;
    if (bytes == 0) return;
  }
}

}  // namespace spw::libc
