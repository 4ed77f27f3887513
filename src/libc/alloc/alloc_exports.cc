// The allocation functions under their ordinary names: for code that was not recompiled, and for what may get a managed
// pointer from anywhere.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <bit>
#include <new>

#include "base/units.h"
#include "libc/alloc/allocate.h"
#include "libc/entry.h"
#include "libc/real.h"

using namespace spw::libc;

#define SPW_CALLER __builtin_return_address(0)

namespace {

// For what dlsym allocates while libc's own functions are being looked up; never given back.
constexpr size_t kBootstrapBytes = 16 * 1024;
alignas(16) constinit char bootstrap[kBootstrapBytes];
constinit size_t bootstrap_used = 0;

void* bootstrap_allocate(size_t bytes) {
  bytes = (bytes + 15) / 16 * 16;
  if (bytes > kBootstrapBytes - bootstrap_used) return nullptr;
  void* object = bootstrap + bootstrap_used;
  bootstrap_used += bytes;
  return object;
}

bool from_bootstrap(const void* object) {
  auto address = reinterpret_cast<uintptr_t>(object), begin = reinterpret_cast<uintptr_t>(bootstrap);
  return address - begin < kBootstrapBytes;
}

void* too_large() {
  errno = ENOMEM;
  return nullptr;
}

// As glibc has it: the next power of two, if there is one.
void* allocate_aligned(size_t alignment, size_t bytes, const void* caller) {
  if (alignment > size_t{1} << 63) {
    errno = EINVAL;
    return nullptr;
  }
  return process_allocate(bytes, std::bit_ceil(std::max(alignment, alignof(max_align_t))), caller);
}

}  // namespace

SPW_ENTRY void* malloc(size_t bytes) {
  return resolving() ? bootstrap_allocate(bytes) : process_allocate(bytes, alignof(max_align_t), SPW_CALLER);
}
SPW_ENTRY void* calloc(size_t count, size_t bytes) {
  return resolving() ? bootstrap_allocate(count * bytes) : process_allocate_zeroed(count, bytes, SPW_CALLER);
}
SPW_ENTRY void* realloc(void* object, size_t bytes) {
  if (!from_bootstrap(object)) [[likely]]
    return process_reallocate(object, bytes, SPW_CALLER);
  void* moved = native_allocate(bytes);
  size_t held = static_cast<size_t>(bootstrap + kBootstrapBytes - static_cast<char*>(object));
  if (moved != nullptr) memcpy(moved, object, bytes < held ? bytes : held);
  return moved;
}
SPW_ENTRY void* reallocarray(void* object, size_t count, size_t bytes) {
  size_t total;
  return __builtin_mul_overflow(count, bytes, &total) ? too_large() : realloc(object, total);
}
SPW_ENTRY void free(void* object) {
  if (!from_bootstrap(object)) [[likely]]
    release(object);
}
SPW_ENTRY size_t malloc_usable_size(void* object) { return object == nullptr ? 0 : usable_bytes(object); }
SPW_ENTRY void* memalign(size_t alignment, size_t bytes) {
  return allocate_aligned(alignment, bytes, SPW_CALLER);
}
SPW_ENTRY void* aligned_alloc(size_t alignment, size_t bytes) {
  return allocate_aligned(alignment, bytes, SPW_CALLER);
}
SPW_ENTRY void* valloc(size_t bytes) { return process_allocate(bytes, spw::kMmuPageBytes, SPW_CALLER); }
SPW_ENTRY void* pvalloc(size_t bytes) {
  if (bytes > PTRDIFF_MAX) return too_large();
  return process_allocate(spw::round_up(bytes, spw::kMmuPageBytes), spw::kMmuPageBytes, SPW_CALLER);
}
SPW_ENTRY int posix_memalign(void** object, size_t alignment, size_t bytes) {
  if (alignment % sizeof(void*) != 0 || !spw::is_power_of_two(alignment)) return EINVAL;
  int saved_errno = errno;
  void* got = process_allocate(bytes, alignment, SPW_CALLER);
  errno = saved_errno;
  if (got == nullptr) return ENOMEM;
  *object = got;
  return 0;
}

void operator delete(void* object) noexcept { release(object); }
void operator delete[](void* object) noexcept { release(object); }
void operator delete(void* object, size_t) noexcept { release(object); }
void operator delete[](void* object, size_t) noexcept { release(object); }
void operator delete(void* object, const std::nothrow_t&) noexcept { release(object); }
void operator delete[](void* object, const std::nothrow_t&) noexcept { release(object); }
void operator delete(void* object, std::align_val_t) noexcept { release(object); }
void operator delete[](void* object, std::align_val_t) noexcept { release(object); }
void operator delete(void* object, size_t, std::align_val_t) noexcept { release(object); }
void operator delete[](void* object, size_t, std::align_val_t) noexcept { release(object); }
void operator delete(void* object, std::align_val_t, const std::nothrow_t&) noexcept { release(object); }
void operator delete[](void* object, std::align_val_t, const std::nothrow_t&) noexcept { release(object); }
