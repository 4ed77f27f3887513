// The entry points behind the memory functions, for recompiled code: the bytes may be managed or not.
//
// Threads: any. An I/O error ends in ManagedAccess's report.
#pragma once

#include <cstddef>

extern "C" {
void* __spw_memcpy_v1(void* to, const void* from, size_t bytes);
void* __spw_memmove_v1(void* to, const void* from, size_t bytes);
void* __spw_memset_v1(void* to, int value, size_t bytes);
void* __spw_mempcpy_v1(void* to, const void* from, size_t bytes);
int __spw_memcmp_v1(const void* a, const void* b, size_t bytes);
int __spw_bcmp_v1(const void* a, const void* b, size_t bytes);
void* __spw_memchr_v1(const void* start, int value, size_t bytes);
void* __spw_memrchr_v1(const void* start, int value, size_t bytes);
void* __spw_rawmemchr_v1(const void* start, int value);
void* __spw_memmem_v1(const void* in, size_t in_bytes, const void* what, size_t what_bytes);
}
