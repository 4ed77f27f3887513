// Atomics of every width and order, and 16-byte compare-and-swap.
#include <stdatomic.h>

#include "check.h"

#define EACH(type, name)                                                                           \
  static void name(void) {                                                                         \
    const int n = 3000;                                                                            \
    _Atomic type* a = malloc(n * sizeof *a);                                                       \
    uint64_t h = sizeof(type);                                                                     \
    for (int i = 0; i < n; ++i) atomic_store_explicit(&a[i], (type)(i * 7), memory_order_relaxed); \
    for (int i = 0; i < n; ++i) {                                                                  \
      _Atomic type* p = &a[i * 1021 % n];                                                          \
      h = mix(h, (uint64_t)atomic_fetch_add(p, (type)i));                                          \
      h = mix(h, (uint64_t)atomic_fetch_sub_explicit(p, 3, memory_order_acq_rel));                 \
      h = mix(h, (uint64_t)atomic_fetch_and(p, (type)~8));                                         \
      h = mix(h, (uint64_t)atomic_fetch_or(p, 5));                                                 \
      h = mix(h, (uint64_t)atomic_fetch_xor(p, 9));                                                \
      h = mix(h, (uint64_t)atomic_exchange(p, (type)(i * 3)));                                     \
      type expected = i % 2 ? (type)(i * 3) : (type)(i + 1);                                       \
      h = mix(h, atomic_compare_exchange_strong(p, &expected, (type)(i * 5)));                     \
      h = mix(h, (uint64_t)expected + (uint64_t)atomic_load_explicit(p, memory_order_acquire));    \
    }                                                                                              \
    REPORT(#name, h);                                                                              \
  }
EACH(uint8_t, atomics_8)
EACH(uint16_t, atomics_16)
EACH(uint32_t, atomics_32)
EACH(uint64_t, atomics_64)

static void pointers(void) {
  const int n = 2000;
  _Atomic(int*)* a = calloc(n, sizeof *a);
  int* values = malloc(n * sizeof *values);
  uint64_t h = 1;
  for (int i = 0; i < n; ++i) values[i] = i;
  for (int i = 0; i < n; ++i) atomic_store(&a[i], &values[n - 1 - i]);
  for (int i = 0; i < n; ++i) h = mix(h, (uint64_t)*atomic_exchange(&a[i * 3 % n], &values[i]));
  for (int i = 0; i < n; ++i) h = mix(h, (uint64_t)*atomic_load(&a[i]));
  REPORT("pointers", h);
}

static void wide(void) {
  const int n = 2000;
  __int128* a = aligned_alloc(16, n * sizeof *a);
  uint64_t h = 2;
  for (int i = 0; i < n; ++i) a[i] = (__int128)i << 60;
  for (int i = 0; i < n; ++i) {
    __int128* p = &a[i * 1021 % n];
    const __int128 old = *p;
    h = mix(h, __sync_bool_compare_and_swap(p, i % 2 ? old : old + 1, old * 3 + 1));
    h = mix(h, (uint64_t)(*p >> 50) ^ (uint64_t)*p);
  }
  REPORT("wide", h);
}

static void floating(void) {
  const int n = 1000;
  _Atomic double* a = calloc(n, sizeof *a);
  uint64_t h = 3;
  for (int i = 0; i < n; ++i) a[i * 7 % n] += i * 0.5;
  for (int i = 0; i < n; ++i) h = mix(h, (uint64_t)(a[i] * 8));
  REPORT("floating", h);
}

int main(void) {
  atomics_8();
  atomics_16();
  atomics_32();
  atomics_64();
  pointers();
  wide();
  floating();
}
