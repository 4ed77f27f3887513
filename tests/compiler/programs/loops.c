// Loops of every shape that the pass treats apart: streams of all strides and directions, few and many iterations,
// starts at every offset from a block edge, values used after the loop, nested, early exits, indirect accesses beside
// streams, and one address in all iterations.
#include <string.h>

#include "check.h"

#define N 9000
#define NOINLINE __attribute__((noinline))

static long* words;
static int* ints;
static double* reals;
static uint8_t* bytes;

static void fill(void) {
  for (int i = 0; i < N; ++i) {
    words[i] = (long)(random_u64() % 1000);
    ints[i] = (int)(random_u64() % N);
    reals[i] = (double)(random_u64() % 512) / 4;
    bytes[i] = (uint8_t)random_u64();
  }
}
static uint64_t hash_all(void) {
  uint64_t h = 1;
  HASH_BYTES(h, words, N * sizeof *words);
  HASH_BYTES(h, ints, N * sizeof *ints);
  HASH_BYTES(h, reals, N * sizeof *reals);
  HASH_BYTES(h, bytes, N);
  return h;
}

#define STRIDE(name, type, array, step)                                                             \
  NOINLINE static uint64_t name(type* p, long n) {                                                  \
    uint64_t s = 0;                                                                                 \
    _Pragma("clang loop vectorize(disable)") for (long i = 0; i < n; ++i) s =                       \
        s * 3 + (uint64_t)p[i * (step)];                                                            \
    _Pragma("clang loop vectorize(disable)") for (long i = 0; i < n; ++i) p[i * (step)] += (type)i; \
    return s;                                                                                       \
  }
STRIDE(words_1, long, words, 1)
STRIDE(words_3, long, words, 3)
STRIDE(words_back, long, words, -1)
STRIDE(words_64, long, words, 64)
STRIDE(words_row, long, words, 700)
STRIDE(ints_2, int, ints, 2)
STRIDE(ints_back_5, int, ints, -5)
STRIDE(bytes_1, uint8_t, bytes, 1)
STRIDE(bytes_back_7, uint8_t, bytes, -7)

static void strides(void) {
  uint64_t h = 2;
  fill();
  for (long n = 0; n < 40; ++n) {
    h = mix(h, words_1(words + 490 + n, n));
    h = mix(h, words_back(words + 520 + n, n));
    h = mix(h, bytes_1(bytes + 4080, n));
    h = mix(h, ints_2(ints + 1000, n));
  }
  for (long n = 40; n < 1200; n = n * 2 + 1) {
    h = mix(h, words_1(words + n % 7, n));
    h = mix(h, words_3(words + n % 7, n));
    h = mix(h, words_back(words + N - 1 - n % 7, n));
    h = mix(h, words_64(words + n % 7, n / 10));
    h = mix(h, words_row(words, n % 12));
    h = mix(h, ints_2(ints + n % 7, n));
    h = mix(h, ints_back_5(ints + N - 1 - n % 7, n));
    h = mix(h, bytes_1(bytes + n % 7, n));
    h = mix(h, bytes_back_7(bytes + N - 1 - n % 7, n));
  }
  REPORT("strides", mix(h, hash_all()));
}

NOINLINE static void triad(double* a, const double* b, const double* c, long n) {
  for (long i = 0; i < n; ++i) a[i] = b[i] + 3 * c[i];
}
NOINLINE static void shift_up(long* p, long n) {
  for (long i = n - 1; i > 0; --i) p[i] = p[i - 1] + 1;
}
NOINLINE static void prefix_sums(long* p, long n) {
  for (long i = 1; i < n; ++i) p[i] += p[i - 1];
}
NOINLINE static void widen(double* to, const uint8_t* from, long n) {
  for (long i = 0; i < n; ++i) to[i] = from[i] * 0.5;
}
NOINLINE static void narrow(uint8_t* to, const long* from, long n) {
  for (long i = 0; i < n; ++i) to[i] = (uint8_t)(from[i] * 3);
}
NOINLINE static void nine_streams(long* p, long n) {
  for (long i = 0; i < n; ++i)
    p[i] = p[i + 900] + p[i + 1800] * p[i + 2700] + p[i + 3600] - p[i + 4500] + p[i + 5400] + p[i + 6300] +
           p[i + 7200] + p[i + 8100];
}
static void several_streams(void) {
  fill();
  for (long n = 1; n < 2500; n = n * 3 + 1) {
    triad(reals, reals + 3001, reals + 6002, n);
    triad(reals + 3, reals, reals + 1, n);
    shift_up(words + 5, n);
    prefix_sums(words + 3001, n);
    widen(reals + 4000, bytes + 1, n);
    narrow(bytes + 1, words + 11, n);
  }
  nine_streams(words, 900);
  REPORT("several_streams", hash_all());
}

NOINLINE static void stencil(double* to, const double* from, int width, int height) {
  for (int y = 1; y < height - 1; ++y)
    for (int x = 1; x < width - 1; ++x)
      to[y * width + x] = from[y * width + x] * 0.5 + from[y * width + x - 1] + from[y * width + x + 1] +
                          from[(y - 1) * width + x] + from[(y + 1) * width + x];
}
NOINLINE static void multiply(double* c, const double* a, const double* b, int n) {
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
}
NOINLINE static long columns(const int* p, int rows, int width) {
  long s = 0;
  for (int x = 0; x < width; ++x)
    for (int y = 0; y < rows; ++y) s = s * 5 + p[y * width + x];
  return s;
}
static void nests(void) {
  fill();
  stencil(reals, reals + 4500, 90, 50);
  multiply(reals, reals + 3000, reals + 6000, 50);
  REPORT("nests", mix(hash_all(), (uint64_t)columns(ints, 90, 100)));
}

NOINLINE static long find(const long* p, long n, long value) {
  for (long i = 0; i < n; ++i)
    if (p[i] == value) return i;
  return -1;
}
NOINLINE static const long* lower(const long* p, long pivot) {
  while (*p < pivot) ++p;
  return p;
}
NOINLINE static long down(const long* p, long pivot) {
  long n = 0;
  while (*--p > pivot) ++n;
  return n;
}
NOINLINE static long last_and_count(const long* p, long n, long* last) {
  long i, count = 0, seen = 0;
  for (i = 0; i < n; ++i) {
    seen = p[i];
    count += seen & 1;
  }
  *last = seen + i;
  return count;
}
static void exits(void) {
  uint64_t h = 3;
  fill();
  for (int k = 0; k < 200; ++k) {
    long last;
    h = mix(h, (uint64_t)find(words + k * 13, 3000, k * 5));
    words[N - 1] = 1 << 30;
    h = mix(h, (uint64_t)(lower(words + k * 40, 990 + k) - words));
    words[0] = -1;
    h = mix(h, (uint64_t)down(words + k * 40 + 20, k % 10));
    h = mix(h, (uint64_t)last_and_count(words + k, k * 7, &last));
    h = mix(h, (uint64_t)last);
  }
  REPORT("exits", h);
}

NOINLINE static long indirect(const int* index, const long* values, long n) {
  long s = 0;
  for (long i = 0; i < n; ++i) s = s * 7 + values[index[i]];
  return s;
}
NOINLINE static void histogram(long* bins, const uint8_t* from, long n) {
  for (long i = 0; i < n; ++i) ++bins[from[i] * 35];
}
NOINLINE static void sometimes(long* p, const int* q, long n) {
  for (long i = 0; i < n; ++i)
    if (q[i] & 4) p[i * 2] += q[i + 1];
}
NOINLINE static void one_address(long* sum, const long* from, long n) {
  for (long i = 0; i < n; ++i) {
    *sum += from[i];
    sum[1] ^= *sum;
  }
}
static void beside_streams(void) {
  uint64_t h = 4;
  fill();
  h = mix(h, (uint64_t)indirect(ints, words, N));
  histogram(words, bytes, N);
  sometimes(words, ints, N / 2 - 1);
  for (int k = 500; k < 520; ++k) one_address(words + k, words + 1000 + k, 1500);
  REPORT("beside_streams", mix(h, hash_all()));
}

struct pair {
  int id;
  short kind;
  double weight;
};
NOINLINE static double records(struct pair* p, int n) {
  double s = 0;
  for (int i = 0; i < n; ++i) {
    s += p[i].weight * p[i].kind;
    p[i].id += i;
    if (p[i].id % 3 == 0) p[i].kind = (short)(p[i].kind + 1);
  }
  return s;
}
static void structures(void) {
  const int n = 2000;
  struct pair* p = calloc(n, sizeof *p);
  uint64_t h = 5;
  for (int i = 0; i < n; ++i) p[i] = (struct pair){i, (short)(i % 9), i * 0.25};
  for (int k = 0; k < 5; ++k) h = mix(h, (uint64_t)records(p + k, n - k));
  for (int i = 0; i < n; ++i) h = mix(h, (uint64_t)(p[i].id * 16 + p[i].kind) + (uint64_t)p[i].weight);
  REPORT("structures", h);
}

int main(void) {
  words = malloc(N * sizeof *words);
  ints = malloc(N * sizeof *ints);
  reals = malloc(N * sizeof *reals);
  bytes = malloc(N);
  strides();
  several_streams();
  nests();
  exits();
  beside_streams();
  structures();
}
