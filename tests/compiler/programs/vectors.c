// Vector types of 8 to 256 bytes, aligned and not; loops that vectorise: conditional loads and stores
// (masked), indexed ones (gathers, scatters), reversed and strided ones, compressing ones; x86 masked
// intrinsics where they exist.
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "check.h"

#define N 6000
#define M (N - 37)

typedef int v2 __attribute__((vector_size(8)));
typedef int v4 __attribute__((vector_size(16)));
typedef int v8 __attribute__((vector_size(32)));
typedef int v16 __attribute__((vector_size(64)));
typedef int v64 __attribute__((vector_size(256)));

#define EACH(type, lanes)                                    \
  static void aligned_##type(void) {                         \
    const int n = 300;                                       \
    type* a = aligned_alloc(sizeof(type), n * sizeof(type)); \
    uint64_t h = lanes;                                      \
    for (int i = 0; i < n; ++i)                              \
      for (int k = 0; k < lanes; ++k) a[i][k] = i * k;       \
    for (int i = 1; i < n; ++i) a[i] = a[i] * 3 + a[i - 1];  \
    HASH_BYTES(h, a, n * sizeof(type));                      \
    REPORT("aligned_" #type, h);                             \
  }                                                          \
  static void unaligned_##type(void) {                       \
    const int n = 300;                                       \
    char* a = malloc((n + 1) * sizeof(type));                \
    uint64_t h = lanes;                                      \
    memset(a, 3, (n + 1) * sizeof(type));                    \
    for (int i = 0; i < n; ++i) {                            \
      type v;                                                \
      memcpy(&v, a + i * sizeof(type) + 3, sizeof v);        \
      v = v * 5 + i;                                         \
      memcpy(a + i * sizeof(type) + 1, &v, sizeof v);        \
    }                                                        \
    HASH_BYTES(h, a, n * sizeof(type));                      \
    REPORT("unaligned_" #type, h);                           \
  }
EACH(v2, 2)
EACH(v4, 4)
EACH(v8, 8)
EACH(v16, 16)
EACH(v64, 64)

static int *a, *b, *c;
static double *x, *y;

static void fill(void) {
  for (int i = 0; i < N; ++i) {
    a[i] = (int)(random_u64() % 2000) - 1000;
    b[i] = (int)(random_u64() % N);
    c[i] = i;
    x[i] = (double)(random_u64() % 1000);
    y[i] = (double)(i % 17);
  }
}
static void report(const char* name) {
  uint64_t h = 1;
  for (int i = 0; i < N; ++i) h = mix(h, (uint64_t)(a[i] + b[i] + c[i]) + (uint64_t)(x[i] + y[i]));
  REPORT(name, h);
}

static void sums(void) {
  fill();
  long s = 0;
  double d = 0;
  for (int i = 0; i < M; ++i) s += a[i];
  for (int i = M; i-- > 0;) s -= b[i] * 2;
  for (int i = 0; i < M; i += 3) s += c[i];
  for (int i = 0; i < M; ++i) d += x[i];
  REPORT("sums", (uint64_t)s + (uint64_t)d);
}
static void maps(int* restrict p, const int* restrict q, int n) {
  for (int i = 0; i < n; ++i) p[i] = q[i] * 3 + p[i];
  for (int i = 0; i < n; ++i) p[n - 1 - i] ^= q[i];
}
static void conditional(int* restrict p, const int* restrict q, const int* restrict r, int n) {
  for (int i = 0; i < n; ++i)
    if (q[i] > 0) p[i] = r[i] + 1;
  for (int i = 0; i < n; ++i)
    if (q[i] < -500) p[i] = r[i] * q[i];
}
static void conditional_doubles(double* restrict p, const double* restrict q, int n) {
  for (int i = 0; i < n; ++i)
    if (q[i] > 500) p[i] = q[i] * 0.5;
}
static void indexed(int* restrict p, const int* restrict q, const int* restrict index, int n) {
  for (int i = 0; i < n; ++i) p[i] = q[index[i]];
}
static void scattered(int* restrict p, const int* restrict index, int n) {
  for (int i = 0; i < n; ++i) p[index[i]] = i;
}
static int compressed(int* restrict p, const int* restrict q, int n) {
  int k = 0;
  for (int i = 0; i < n; ++i)
    if (q[i] & 1) p[k++] = q[i];
  return k;
}
static void interleaved(int* restrict p, const int* restrict q, int n) {
  for (int i = 0; i + 1 < n; i += 2) {
    p[i] = q[i] + q[i + 1];
    p[i + 1] = q[i] - q[i + 1];
  }
}

#ifdef __AVX2__
static void masked_intrinsics(void) {
  uint64_t h = 7;
  fill();
  for (int i = 0; i + 8 < N; i += 5) {
    const __m256i mask = _mm256_setr_epi32(i % 2 ? -1 : 0, -1, 0, i % 3 ? -1 : 0, 0, 0, -1, i % 7 ? 0 : -1);
    const __m256i v = _mm256_maskload_epi32(a + i, mask);
    _mm256_maskstore_epi32(b + i, mask, _mm256_add_epi32(v, _mm256_set1_epi32(i)));
    _mm256_maskstore_pd(x + i, mask, _mm256_maskload_pd(y + i, mask));
  }
  /* The active lanes are the last four before the end of an allocation; the others lie beyond it. */
  int* edge = aligned_alloc(4096, 4096);
  edge[1023] = 42;
  const __m256i first = _mm256_setr_epi32(-1, 0, 0, 0, 0, 0, 0, 0);
  h = mix(h, (uint64_t)_mm256_extract_epi32(_mm256_maskload_epi32(edge + 1023, first), 0));
  _mm256_stream_si256((__m256i*)edge, _mm256_set1_epi32(11));
  h = mix(h, (uint64_t)edge[5]);
  REPORT("masked_intrinsics_edge", h);
  report("masked_intrinsics");
}
#endif

int main(void) {
  aligned_v2(), aligned_v4(), aligned_v8(), aligned_v16(), aligned_v64();
  unaligned_v2(), unaligned_v4(), unaligned_v8(), unaligned_v16(), unaligned_v64();
  a = malloc(N * sizeof *a), b = malloc(N * sizeof *b), c = malloc(N * sizeof *c);
  x = malloc(N * sizeof *x), y = malloc(N * sizeof *y);
  sums();
  fill(), maps(a + 1, b, M), report("maps");
  fill(), conditional(c + 3, a, b + 1, M), report("conditional");
  fill(), conditional_doubles(y + 1, x, M), report("conditional_doubles");
  fill(), indexed(a, c, b, N), report("indexed");
  fill(), scattered(c, b, N), report("scattered");
  fill(), c[0] = compressed(a, b, N), report("compressed");
  fill(), interleaved(a, b, M), report("interleaved");
#ifdef __AVX2__
  masked_intrinsics();
#endif
}
