// Allocation: from managed space or from libc, as rules.h says, and freeing whatever came from anywhere.
//
// What is libc's is counted, so that the quota sees every native byte. free and realloc take both kinds from anyone.
// Threads: any. Errors: as libc: nullptr and ENOMEM or EINVAL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace spw::libc {

void* allocate(size_t bytes, size_t alignment);
void* allocate_zeroed(size_t count, size_t bytes);
// An object that grows may move from native to managed memory.
void* reallocate(void* object, size_t bytes);
void release(void* object);
size_t usable_bytes(void* object);

// Under the ordinary names, for any code of the process. `caller`: the address that the call returns to.
void* process_allocate(size_t bytes, size_t alignment, const void* caller);
void* process_allocate_zeroed(size_t count, size_t bytes, const void* caller);
void* process_reallocate(void* object, size_t bytes, const void* caller);

// libc's, counted against the quota.
void* native_allocate(size_t bytes);
void* native_allocate_zeroed(size_t count, size_t bytes);
void* native_allocate_aligned(size_t alignment, size_t bytes);

}  // namespace spw::libc

extern "C" {
void* __spw_malloc_v1(size_t bytes);
void* __spw_calloc_v1(size_t count, size_t bytes);
void* __spw_realloc_v1(void* object, size_t bytes);
void* __spw_reallocarray_v1(void* object, size_t count, size_t bytes);
int __spw_posix_memalign_v1(void** object, size_t alignment, size_t bytes);
void* __spw_aligned_alloc_v1(size_t alignment, size_t bytes);
void* __spw_memalign_v1(size_t alignment, size_t bytes);
void* __spw_valloc_v1(size_t bytes);
char* __spw_strdup_v1(const char* text);
char* __spw_strndup_v1(const char* text, size_t bytes_max);
void* __spw__Znwm_v1(size_t bytes);
void* __spw__Znam_v1(size_t bytes);
void* __spw__ZnwmRKSt9nothrow_t_v1(size_t bytes, const std::nothrow_t&) noexcept;
void* __spw__ZnamRKSt9nothrow_t_v1(size_t bytes, const std::nothrow_t&) noexcept;
void* __spw__ZnwmSt11align_val_t_v1(size_t bytes, std::align_val_t alignment);
void* __spw__ZnamSt11align_val_t_v1(size_t bytes, std::align_val_t alignment);
void* __spw__ZnwmSt11align_val_tRKSt9nothrow_t_v1(size_t bytes, std::align_val_t,
                                                  const std::nothrow_t&) noexcept;
void* __spw__ZnamSt11align_val_tRKSt9nothrow_t_v1(size_t bytes, std::align_val_t,
                                                  const std::nothrow_t&) noexcept;
}
