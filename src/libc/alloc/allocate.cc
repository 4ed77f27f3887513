#include "libc/alloc/allocate.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#include <bit>

#include "libc/alloc/caller.h"
#include "libc/alloc/quota.h"
#include "libc/bytes/strings.h"
#include "libc/entry.h"
#include "libc/managed.h"
#include "libc/real.h"
#include "telemetry/areas.h"

namespace spw::libc {

namespace {

void* counted(void* object) {
  if (object != nullptr) count_native_bytes(static_cast<int64_t>(real().malloc_usable_size(object)));
  return object;
}

bool goes_managed(const Context* c, size_t bytes) {
  return c != nullptr && (bytes >= c->threshold_bytes || native_bytes() + bytes > c->quota_bytes);
}

heap::Heap::Allocation managed(const Context& c, size_t bytes, size_t alignment) {
  InRuntime guard;
  const telemetry::AllocationSite site(bytes >= telemetry::kAreaBytesMin ? caller_outside() : nullptr);
  auto got = c.heap->allocate(bytes, alignment);
  dispatch_if_wanted();
  if (got.address == nullptr) errno = ENOMEM;
  return got;
}

// Copies the object into a new one and frees it.
void* move_object(void* object, size_t old_bytes, void* target, size_t bytes) {
  if (target == nullptr) return nullptr;
  copy_bytes(target, object, old_bytes < bytes ? old_bytes : bytes);
  release(object);
  return target;
}

void* reallocate_managed(void* object, size_t bytes) {
  const Context* c = context();
  if (c == nullptr) {  // a forked child
    errno = ENOMEM;
    return nullptr;
  }
  {
    InRuntime guard;
    if (c->heap->resize_in_place(object, bytes)) return object;
  }
  void* target =
      goes_managed(c, bytes) ? managed(*c, bytes, heap::kAlignmentMin).address : native_allocate(bytes);
  return move_object(object, c->heap->usable_bytes(object), target, bytes);
}

}  // namespace

void* native_allocate(size_t bytes) { return counted(libc_malloc(bytes)); }
void* native_allocate_zeroed(size_t count, size_t bytes) { return counted(libc_calloc(count, bytes)); }
void* native_allocate_aligned(size_t alignment, size_t bytes) {
  return counted(libc_memalign(alignment, bytes));
}

namespace {

// Known before there is a context, so that a process that never needs one makes none.
Atomic<uint64_t> process_threshold_bytes{UINT64_MAX};
Atomic<uint64_t> process_quota_bytes{UINT64_MAX};

// Where the code of a library lies; empty until the process is managed.
struct Code {
  Atomic<uintptr_t> begin{0}, end{0};

  // By any address in it.
  void find(const void* of_it) {
    dl_find_object found;
    if (_dl_find_object(const_cast<void*>(of_it), &found) != 0) return;
    begin.store_relaxed(reinterpret_cast<uintptr_t>(found.dlfo_map_start));
    end.store_relaxed(reinterpret_cast<uintptr_t>(found.dlfo_map_end));
  }
  bool contains(uintptr_t address) const {
    return address >= begin.load_relaxed() && address < end.load_relaxed();
  }
};
Code g_libc, g_loader;

// libc gives the kernel what it allocates for itself (buffers of files and directories, results it makes room for),
// with system calls of its own; and threads that it starts for itself block every signal, where the loader allocates
// what is local to them. Where the kernel may not fault, or a signal is what serves a fault, that has to stay native.
bool is_for_the_kernel(const void* caller) {
  const auto address = reinterpret_cast<uintptr_t>(caller);
  return (g_libc.contains(address) || g_loader.contains(address)) && !kernel_reaches();
}

bool process_wants_managed(size_t bytes, const void* caller) {
  return (bytes >= process_threshold_bytes.load_relaxed() ||
          native_bytes() + bytes > process_quota_bytes.load_relaxed()) &&
         !is_for_the_kernel(caller) && !InRuntime::here();
}

}  // namespace

void manage_whole_process(uint64_t threshold_bytes, uint64_t quota_bytes) {
  if (threshold_bytes != UINT64_MAX) {
    g_libc.find(reinterpret_cast<const void*>(files_or_real().read));
    g_loader.find(reinterpret_cast<const void*>(getauxval(AT_BASE)));
  }
  process_quota_bytes.store_relaxed(quota_bytes);
  process_threshold_bytes.store_relaxed(threshold_bytes);
}

bool whole_process_maps(size_t bytes) {
  return bytes >= process_threshold_bytes.load_relaxed() && !InRuntime::here();
}

void* process_allocate(size_t bytes, size_t alignment, const void* caller) {
  if (process_wants_managed(bytes, caller)) [[unlikely]]
    return allocate(bytes, alignment);
  return alignment <= heap::kAlignmentMin ? native_allocate(bytes)
                                          : native_allocate_aligned(alignment, bytes);
}

void* process_allocate_zeroed(size_t count, size_t bytes, const void* caller) {
  size_t total;
  if (!__builtin_mul_overflow(count, bytes, &total) && process_wants_managed(total, caller)) [[unlikely]]
    return allocate_zeroed(count, bytes);
  return native_allocate_zeroed(count, bytes);
}

void* process_reallocate(void* object, size_t bytes, const void* caller) {
  return reallocate(object, bytes, process_wants_managed(bytes, caller));
}

void* allocate(size_t bytes, size_t alignment) {
  const Context* c = allocation_context();
  if (goes_managed(c, bytes)) return managed(*c, bytes, alignment).address;
  return alignment <= heap::kAlignmentMin ? native_allocate(bytes)
                                          : native_allocate_aligned(alignment, bytes);
}

void* allocate_zeroed(size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    errno = ENOMEM;
    return nullptr;
  }
  const Context* c = allocation_context();
  if (!goes_managed(c, total)) return native_allocate_zeroed(count, bytes);
  auto got = managed(*c, total, heap::kAlignmentMin);
  if (got.address != nullptr && !got.zeroed) fill_bytes(got.address, 0, total);
  return got.address;
}

void* reallocate(void* object, size_t bytes, bool managed_wanted) {
  if (object == nullptr)
    return managed_wanted ? allocate(bytes, heap::kAlignmentMin) : native_allocate(bytes);
  if (bytes == 0) {
    release(object);
    return nullptr;
  }
  if (is_managed(object)) return reallocate_managed(object, bytes);
  size_t old_bytes = real().malloc_usable_size(object);
  const Context* c = managed_wanted ? allocation_context() : nullptr;
  if (c != nullptr && bytes > old_bytes && goes_managed(c, bytes))
    return move_object(object, old_bytes, managed(*c, bytes, heap::kAlignmentMin).address, bytes);
  void* moved = libc_realloc(object, bytes);
  if (moved != nullptr)
    count_native_bytes(static_cast<int64_t>(real().malloc_usable_size(moved)) -
                       static_cast<int64_t>(old_bytes));
  return moved;
}

void release(void* object) {
  if (object == nullptr) return;
  int saved_errno = errno;
  if (!is_managed(object)) {
    count_native_bytes(-static_cast<int64_t>(real().malloc_usable_size(object)));
    libc_free(object);
  } else if (const Context* c = context(); c != nullptr && !access::is_forked()) {
    InRuntime guard;
    c->heap->free(object);
  }  // else a forked child, which keeps what it cannot touch
  errno = saved_errno;
}

size_t usable_bytes(void* object) {
  if (!is_managed(object)) return real().malloc_usable_size(object);
  const Context* c = context();
  return c == nullptr ? 0 : c->heap->usable_bytes(object);
}

}  // namespace spw::libc

using namespace spw::libc;

SPW_ENTRY void* __spw_malloc_v1(size_t bytes) { return allocate(bytes, spw::heap::kAlignmentMin); }
SPW_ENTRY void* __spw_calloc_v1(size_t count, size_t bytes) { return allocate_zeroed(count, bytes); }
SPW_ENTRY void* __spw_realloc_v1(void* object, size_t bytes) { return reallocate(object, bytes, true); }
SPW_ENTRY void* __spw_reallocarray_v1(void* object, size_t count, size_t bytes) {
  size_t total;
  if (!__builtin_mul_overflow(count, bytes, &total)) return reallocate(object, total, true);
  errno = ENOMEM;
  return nullptr;
}
SPW_ENTRY int __spw_posix_memalign_v1(void** object, size_t alignment, size_t bytes) {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  int saved_errno = errno;
  void* got = allocate(bytes, alignment);
  errno = saved_errno;
  if (got == nullptr) return ENOMEM;
  store_value(object, got);
  return 0;
}
SPW_ENTRY void* __spw_memalign_v1(size_t alignment, size_t bytes) {
  if (alignment > (SIZE_MAX >> 1) + 1) {
    errno = EINVAL;
    return nullptr;
  }
  return allocate(bytes, std::bit_ceil(alignment));
}
SPW_ENTRY void* __spw_aligned_alloc_v1(size_t alignment, size_t bytes) {
  return __spw_memalign_v1(alignment, bytes);
}
SPW_ENTRY void* __spw_valloc_v1(size_t bytes) { return allocate(bytes, spw::kMmuPageBytes); }
SPW_ENTRY char* __spw_strdup_v1(const char* text) { return __spw_strndup_v1(text, SIZE_MAX); }
SPW_ENTRY char* __spw_strndup_v1(const char* text, size_t bytes_max) {
  size_t length = string_length(text, bytes_max);
  auto* copy = static_cast<char*>(allocate(length + 1, spw::heap::kAlignmentMin));
  if (copy == nullptr) return nullptr;
  copy_bytes(copy, text, length);
  store_value(copy + length, '\0');
  return copy;
}
