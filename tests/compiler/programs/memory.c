// memcpy, memmove and memset of constant and variable sizes, overlapping and across blocks; strings; qsort and bsearch.
#include <string.h>

#include "check.h"

// Each size costs a compiler seconds: one of each kind is enough.
#define SIZES(do_) \
  do_(1) do_(2) do_(3) do_(4) do_(8) do_(15) do_(16) do_(31) do_(32) do_(64) do_(128) do_(1000) do_(5000)

static unsigned char* fresh(size_t n) {
  unsigned char* p = malloc(n);
  for (size_t i = 0; i < n; ++i) p[i] = (unsigned char)random_u64();
  return p;
}

static void constant_sizes(void) {
  const size_t n = 1 << 16;
  unsigned char *a = fresh(n), *b = fresh(n);
  uint64_t h = 1;
#define COPY(k)                                                                             \
  for (size_t i = 0; i < 60; ++i) memcpy(a + i * 1021 % (n - k), b + i * 769 % (n - k), k); \
  for (size_t i = 0; i < 60; ++i) memset(b + i * 1013 % (n - k), (int)i, k);
  SIZES(COPY)
#define MOVE(k)                                                                 \
  for (size_t i = 0; i < 60; ++i)                                               \
    memmove(a + i * 1021 % (n - k - 9), a + i * 1021 % (n - k - 9) + i % 9, k); \
  for (size_t i = 0; i < 60; ++i) memmove(a + i * 1021 % (n - k - 9) + i % 9, a + i * 1021 % (n - k - 9), k);
  SIZES(MOVE)
  HASH_BYTES(h, a, n);
  HASH_BYTES(h, b, n);
  REPORT("constant_sizes", h);
}

static void variable_sizes(void) {
  const size_t n = 1 << 16;
  unsigned char *a = fresh(n), *b = fresh(n);
  unsigned char local[256];
  uint64_t h = 2;
  for (int i = 0; i < 300; ++i) {
    size_t k = random_u64() % 9000, x = random_u64() % (n - 9000), y = random_u64() % (n - 9000);
    memcpy(a + x, b + y, k);
    memmove(b + x, b + y, k);
    memset(a + y, i, k / 3);
    memcpy(local, a + x, k % 256);
    memcpy(b + y, local, k % 256);
    h = mix(h, (uint64_t)(memcmp(a + x, a + y, k) > 0));
    h = mix(h, (uint64_t)((unsigned char*)memchr(a + x, 7, n - x) - a));
  }
  HASH_BYTES(h, a, n);
  HASH_BYTES(h, b, n);
  REPORT("variable_sizes", h);
}

static void strings(void) {
  uint64_t h = 3;
  char* s = malloc(20000);
  char* t = malloc(20000);
  for (int i = 0; i < 9000; ++i) s[i] = (char)('a' + i * i % 26);
  s[9000] = 0;
  strcpy(t, s + 100);
  strcat(t, "needle");
  strncat(t, s, 50);
  h = mix(h, strlen(t));
  h = mix(h, (uint64_t)(strstr(t, "needle") - t));
  h = mix(h, (uint64_t)(strchr(t, 'q') - t));
  h = mix(h, (uint64_t)(strrchr(t, 'q') - t));
  h = mix(h, (uint64_t)(strcmp(s, t) > 0) + 2 * (uint64_t)(strncmp(s + 100, t, 8000) == 0));
  char* d = strdup(t);
  HASH_BYTES(h, d, strlen(d));
  char* stack[4] = {s, t, d, 0};
  for (char** p = stack; *p; ++p) h = mix(h, strlen(*p));
  REPORT("strings", h);
  puts(t + strlen(t) - 20);
}

static int ascending(const void* a, const void* b) {
  const int x = *(const int*)a, y = *(const int*)b;
  return (x > y) - (x < y);
}
#define COMPARE(k)                                                               \
  for (size_t i = 0; i < 200; ++i) {                                             \
    const unsigned char *x = a + i * 1021 % (n - k), *y = b + i * 769 % (n - k); \
    h = mix(h, (uint64_t)((memcmp(x, y, k) > 0) + 2 * (memcmp(x, y, k) == 0)));  \
  }
static void short_comparisons(void) {
  const size_t n = 1 << 15;
  unsigned char *a = fresh(n), *b = fresh(n);
  uint64_t h = 5;
  for (size_t i = 0; i < n; ++i) a[i] &= 1, b[i] &= 1;
  SIZES(COMPARE)
  memcpy(a, b, n);
  for (size_t i = 0; i + 10 < n; i += 7) h = mix(h, (uint64_t)(memcmp(a + i, b + i, 10) == 0));
  REPORT("short_comparisons", h);
}

static void sorting(void) {
  uint64_t h = 4;
  int* a = malloc(500 * sizeof *a);
  for (int i = 0; i < 500; ++i) a[i] = (int)(random_u64() % 10000);
  qsort(a, 500, sizeof *a, ascending);
  for (int i = 0; i < 500; ++i) h = mix(h, (uint64_t)a[i]);
  h = mix(h, (uint64_t)((int*)bsearch(a + 77, a, 500, sizeof *a, ascending) - a));
  REPORT("sorting", h);
}

int main(void) {
  constant_sizes();
  variable_sizes();
  strings();
  short_comparisons();
  sorting();
}
