// Copying, moving, filling and comparing memory of which any part may be managed.
//
// Threads: any. An I/O error ends in ManagedAccess's report.
#pragma once

#include <cstddef>

namespace spw::access {

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

}  // namespace spw::access
