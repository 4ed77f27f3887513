#include "libc/alloc/allocate.h"

#include <errno.h>
#include <string.h>

#include <bit>

#include "libc/alloc/caller.h"
#include "libc/alloc/rules.h"
#include "libc/bytes/strings.h"
#include "libc/entry.h"
#include "libc/managed.h"
#include "libc/process/thread_stacks.h"
#include "libc/real.h"
#include "telemetry/areas.h"

namespace spw::libc {

namespace {

// Managed as an object, not in a mapping of an allocator that the program brought along. A forked child that has no
// context keeps all that it has.
bool is_managed_object(const void* object) {
  if (!is_managed(object)) return false;
  const Context* c = context();
  return c == nullptr || c->heap->is_object(object);
}

// Another allocator may make objects of its own when it is asked the first time (tcmalloc has): those are not counted.
constinit thread_local bool t_asks = false;

int64_t native_usable_bytes(void* object) {
  if (t_asks) return 0;
  t_asks = true;
  const auto bytes = static_cast<int64_t>(real().malloc_usable_size(object));
  t_asks = false;
  return bytes;
}

void* counted(void* object) {
  if (object != nullptr) count_native_bytes(native_usable_bytes(object));
  return object;
}

}  // namespace

void* native_allocate(size_t bytes) { return counted(libc_malloc(bytes)); }
void* native_allocate_zeroed(size_t count, size_t bytes) { return counted(libc_calloc(count, bytes)); }
void* native_allocate_aligned(size_t alignment, size_t bytes) {
  return counted(libc_memalign(alignment, bytes));
}

namespace {

// Where so many bytes come from: the context of the process, or nullptr for libc.
const Context* source_for(size_t bytes) {
  const Context* c = allocation_context();
  return c != nullptr && managed_by_size(bytes) ? c : nullptr;
}
const Context* source_for(size_t bytes, const void* caller) {
  return managed_for(bytes, caller) ? allocation_context() : nullptr;
}

heap::Heap::Allocation managed(const Context& c, size_t bytes, size_t alignment) {
  InRuntime guard;
  const telemetry::AllocationSite site(bytes >= telemetry::kAreaBytesMin ? caller_outside() : nullptr);
  auto got = c.heap->allocate(bytes, alignment);
  dispatch_if_wanted();
  if (got.address == nullptr) errno = ENOMEM;
  return got;
}

void* allocate_from(const Context* source, size_t bytes, size_t alignment) {
  if (source != nullptr) [[unlikely]]
    return managed(*source, bytes, alignment).address;
  return alignment <= heap::kAlignmentMin ? native_allocate(bytes)
                                          : native_allocate_aligned(alignment, bytes);
}

// count * bytes, which is no overflow where there is a source.
void* allocate_zeroed_from(const Context* source, size_t count, size_t bytes) {
  if (source == nullptr) return native_allocate_zeroed(count, bytes);
  auto got = managed(*source, count * bytes, heap::kAlignmentMin);
  if (got.address != nullptr && !got.zeroed) fill_bytes(got.address, 0, count * bytes);
  return got.address;
}

// Copies the object into a new one and frees it.
void* move_object(void* object, size_t old_bytes, void* target, size_t bytes) {
  if (target == nullptr) return nullptr;
  copy_bytes(target, object, old_bytes < bytes ? old_bytes : bytes);
  release(object);
  return target;
}

// By size, whoever asks: code that was not recompiled gets pieces of managed memory, and may not make them native.
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
  void* target = allocate_from(managed_by_size(bytes) ? c : nullptr, bytes, heap::kAlignmentMin);
  return move_object(object, c->heap->usable_bytes(object), target, bytes);
}

// `source`: of what has to be allocated anew.
void* reallocate_from(const Context* source, void* object, size_t bytes) {
  if (object == nullptr) return allocate_from(source, bytes, heap::kAlignmentMin);
  if (bytes == 0) {
    release(object);
    return nullptr;
  }
  if (is_managed_object(object)) return reallocate_managed(object, bytes);
  size_t old_bytes = real().malloc_usable_size(object);
  if (source != nullptr && bytes > old_bytes)
    return move_object(object, old_bytes, allocate_from(source, bytes, heap::kAlignmentMin), bytes);
  void* moved = libc_realloc(object, bytes);
  if (moved != nullptr)
    count_native_bytes(static_cast<int64_t>(real().malloc_usable_size(moved)) -
                       static_cast<int64_t>(old_bytes));
  return moved;
}

}  // namespace

void* allocate(size_t bytes, size_t alignment) { return allocate_from(source_for(bytes), bytes, alignment); }
void* process_allocate(size_t bytes, size_t alignment, const void* caller) {
  return allocate_from(source_for(bytes, caller), bytes, alignment);
}

void* allocate_zeroed(size_t count, size_t bytes) {
  size_t total;
  const bool overflows = __builtin_mul_overflow(count, bytes, &total);  // which libc refuses
  return allocate_zeroed_from(overflows ? nullptr : source_for(total), count, bytes);
}
void* process_allocate_zeroed(size_t count, size_t bytes, const void* caller) {
  size_t total;
  const bool overflows = __builtin_mul_overflow(count, bytes, &total);
  return allocate_zeroed_from(overflows ? nullptr : source_for(total, caller), count, bytes);
}

void* reallocate(void* object, size_t bytes) { return reallocate_from(source_for(bytes), object, bytes); }
void* process_reallocate(void* object, size_t bytes, const void* caller) {
  return reallocate_from(source_for(bytes, caller), object, bytes);
}

void release(void* object) {
  if (object == nullptr) return;
  int saved_errno = errno;
  if (!is_managed_object(object)) {
    count_native_bytes(-native_usable_bytes(object));
    libc_free(object);
  } else if (const Context* c = context(); c != nullptr && !access::is_forked()) {
    InRuntime guard;
    if (keeps_any_stack()) [[unlikely]]
      release_within(object, c->heap->usable_bytes(object));
    c->heap->free(object);
  }  // else a forked child, which keeps what it cannot touch
  errno = saved_errno;
}

size_t usable_bytes(void* object) {
  if (!is_managed_object(object)) return real().malloc_usable_size(object);
  const Context* c = context();
  return c == nullptr ? 0 : c->heap->usable_bytes(object);
}

}  // namespace spw::libc

using namespace spw::libc;

SPW_ENTRY void* __spw_malloc_v1(size_t bytes) { return allocate(bytes, spw::heap::kAlignmentMin); }
SPW_ENTRY void* __spw_calloc_v1(size_t count, size_t bytes) { return allocate_zeroed(count, bytes); }
SPW_ENTRY void* __spw_realloc_v1(void* object, size_t bytes) { return reallocate(object, bytes); }
SPW_ENTRY void* __spw_reallocarray_v1(void* object, size_t count, size_t bytes) {
  size_t total;
  if (!__builtin_mul_overflow(count, bytes, &total)) return reallocate(object, total);
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
