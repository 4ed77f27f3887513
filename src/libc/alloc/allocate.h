// Allocation: what goes to managed space, and freeing whatever came from anywhere.
//
// An allocation of instrumented code is managed when it is at least the threshold or when the native bytes that are
// live exceed the quota; all others are libc's. Foreign code's allocations (process_*, behind the exported names) are
// libc's too, and counted, unless the whole process is managed. free and realloc take both kinds from anyone.
// Threads: any. Errors: as libc: nullptr and ENOMEM or EINVAL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace spw::libc {

void* allocate(size_t bytes, size_t alignment);
void* allocate_zeroed(size_t count, size_t bytes);
// `managed_wanted`: a result may be moved from native to managed memory (instrumented callers).
void* reallocate(void* object, size_t bytes, bool managed_wanted);
void release(void* object);
size_t usable_bytes(void* object);

// Under the ordinary names, for any code of the process: as allocate() once manage_whole_process() was called, else
// libc's. `caller`: the address the call returns to. What libc and the loader themselves ask for is native where the
// kernel cannot reach managed memory.
void* process_allocate(size_t bytes, size_t alignment, const void* caller);
void* process_allocate_zeroed(size_t count, size_t bytes, const void* caller);
void* process_reallocate(void* object, size_t bytes, const void* caller);
// From now on the allocations and mappings of all code are managed by the same rules; called before there are threads.
// Where managed memory is at its own addresses any code can use it. UINT64_MAX, UINT64_MAX: no more (a forked child).
void manage_whole_process(uint64_t threshold_bytes, uint64_t quota_bytes);
// Whether an mmap of that many bytes by any code may be managed.
bool whole_process_maps(size_t bytes);

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
