// Copying, moving, filling and comparing memory of which any part may be managed. The entry points behind the memory
// functions, and what the rest of this folder uses.
//
// Threads: any. An I/O error ends in ManagedAccess's report.
#pragma once

#include <cstddef>

namespace spw::interpose {

void copy_bytes(void* to, const void* from, size_t bytes);
void move_bytes(void* to, const void* from, size_t bytes);
void fill_bytes(void* to, int value, size_t bytes);
int compare_bytes(const void* a, const void* b, size_t bytes);

// A value at an address that may be managed.
template <class T>
T load_value(const T* from) {
  T value;
  copy_bytes(&value, from, sizeof(T));
  return value;
}
template <class T>
void store_value(T* to, const T& value) {
  copy_bytes(to, &value, sizeof(T));
}

}  // namespace spw::interpose

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
