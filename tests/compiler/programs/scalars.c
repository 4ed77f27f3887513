// Loads and stores of every scalar kind, aligned and not, in structs, unions, bit-fields, variable arrays,
// through varargs, setjmp and byval arguments.
#include <complex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "check.h"

struct flags {
  unsigned a : 3, b : 7, c : 22;
  long long d : 41;
  _Bool e : 1;
};

#pragma pack(push, 1)
struct packed {
  char c;
  short s;
  int i;
  long long l;
  float f;
  double d;
  long double x;
};
#pragma pack(pop)

struct big {
  long words[20];
};

#define N 5000

static void widths(void) {
  uint64_t h = 1;
  uint8_t* a = malloc(N);
  uint16_t* b = malloc(N * 2);
  uint32_t* c = malloc(N * 4);
  uint64_t* d = malloc(N * 8);
  float* f = malloc(N * 4);
  double* g = malloc(N * 8);
  long double* x = malloc(N * sizeof *x);
  double complex* z = malloc(N * sizeof *z);
  __int128* w = malloc(N * sizeof *w);
  for (int i = 0; i < N; ++i) {
    a[i] = (uint8_t)random_u64();
    b[i] = (uint16_t)(a[i] * 7);
    c[i] = b[i] * 65537u;
    d[i] = c[i] * 0x100000001u + random_u64();
    f[i] = (float)(d[i] % 1000) / 8;
    g[i] = f[i] * 3.5;
    x[i] = (long double)g[i] / 4;
    z[i] = g[i] + f[i] * I;
    w[i] = (__int128)d[i] * d[i];
  }
  for (int i = N - 1; i >= 0; --i) {
    h = mix(h, a[i] + b[i]);
    h = mix(h, c[i] ^ d[i]);
    h = mix(h, (uint64_t)(f[i] + g[i] + (double)x[i]));
    double complex square = z[i] * z[i];
    h = mix(h, (uint64_t)(int64_t)(creal(square) + cimag(square)));
    h = mix(h, (uint64_t)(w[i] >> 64) ^ (uint64_t)w[i]);
  }
  REPORT("widths", h);
  free(a), free(b), free(c), free(d), free(f), free(g), free(x), free(z), free(w);
}

static void unaligned(void) {
  uint64_t h = 2;
  const int n = 3000;
  struct packed* p = malloc(n * sizeof *p);
  memset(p, 0, n * sizeof *p);
  for (int i = 0; i < n; ++i) {
    p[i].c = (char)i;
    p[i].s = (short)(i * 3);
    p[i].i = i * 5;
    p[i].l = i * 7ll << 20;
    p[i].f = (float)i / 2;
    p[i].d = i * 1.25;
    p[i].x = i * 2.5L;
  }
  for (int i = 0; i < n; ++i) {
    struct packed q = p[(i * 997) % n];
    h = mix(h, (uint64_t)(q.c + q.s + q.i + q.l) + (uint64_t)(q.f + q.d + (double)q.x));
    p[i].l += (long long)p[i].d;
  }
  for (int i = 0; i < n; ++i) h = mix(h, (uint64_t)p[i].l);
  char* bytes = malloc(20000);
  memset(bytes, 1, 20000);
  for (int i = 0; i + 8 < 20000; i += 3) {
    uint64_t v;
    memcpy(&v, bytes + i, 8);
    v = v * 31 + (uint64_t)i;
    memcpy(bytes + i, &v, 8);
  }
  HASH_BYTES(h, bytes, 20000);
  REPORT("unaligned", h);
}

// Through pointers whose type promises more than there is, as programs do on processors that do not mind.
__attribute__((noinline)) static uint64_t swap_in(uint64_t* number, double* real, uint64_t value) {
  const uint64_t old = *number;
  *number = value;
  *real += (double)(value % 1000);
  return old;
}

__attribute__((noinline)) static void copy_over(uint64_t* to, const uint64_t* from) { memcpy(to, from, 16); }

static void misaligned(void) {
  uint64_t h = 3;
  const int n = 20004;
  char* bytes = malloc(n);
  for (int i = 0; i < n; ++i) bytes[i] = (char)(i % 7);
  for (int round = 0; round < 3; ++round) {
    // Both the block's first use, and one right after a use of the block before.
    for (int i = 4; i + 40 < n; i += 12) {
      h = mix(h, swap_in((uint64_t*)(bytes + i), (double*)(bytes + i + 8), random_u64() >> 12));
      copy_over((uint64_t*)(bytes + i + 20), (uint64_t*)(bytes + i + 4));
    }
    uint64_t* numbers = (uint64_t*)(bytes + 4);
    for (int i = 0; i < (n - 4) / 8; ++i) numbers[i] = numbers[i] * 31 + (uint64_t)i;
    for (int i = (n - 4) / 8; i-- > 1;) h = mix(h, numbers[i] - numbers[i - 1]);
  }
  HASH_BYTES(h, bytes, n);
  REPORT("misaligned", h);
  free(bytes);
}

static void bit_fields(void) {
  uint64_t h = 3;
  struct flags* f = calloc(N, sizeof *f);
  for (int i = 0; i < N; ++i) {
    f[i].a = (unsigned)i;
    f[i].b = (unsigned)(i * 3);
    f[i].c += (unsigned)(i * 5);
    f[i].d -= i * 1000003ll;
    f[i].e = i % 3 == 0;
  }
  for (int i = 0; i < N; ++i) h = mix(h, f[i].a + f[i].b + f[i].c + (uint64_t)f[i].d + f[i].e);
  REPORT("bit_fields", h);
}

__attribute__((noinline)) static long sum_big(struct big b, int from) {
  long s = 0;
  for (int i = from; i < 20; ++i) s += b.words[i];
  return s;
}
__attribute__((noinline)) static struct big make_big(long x) {
  struct big b;
  for (int i = 0; i < 20; ++i) b.words[i] = x * i;
  return b;
}
static void by_value(void) {
  uint64_t h = 4;
  struct big* b = malloc(1000 * sizeof *b);
  for (int i = 0; i < 1000; ++i) b[i] = make_big(i);
  for (int i = 0; i < 1000; ++i) h = mix(h, (uint64_t)sum_big(b[(i * 7) % 1000], i % 20));
  for (int i = 1; i < 1000; ++i) b[i - 1] = b[i];
  for (int i = 0; i < 1000; ++i) h = mix(h, (uint64_t)b[i].words[19]);
  REPORT("by_value", h);
}

static long add_all(int n, ...) {
  va_list list;
  va_start(list, n);
  long s = 0;
  for (int i = 0; i < n; ++i) s += *va_arg(list, long*);
  s += (long)va_arg(list, double);
  va_end(list);
  return s;
}
static void varargs(void) {
  long* p = malloc(8 * sizeof *p);
  for (int i = 0; i < 8; ++i) p[i] = i * i;
  REPORT("varargs", (uint64_t)add_all(8, p, p + 1, p + 2, p + 3, p + 4, p + 5, p + 6, p + 7, 2.5));
}

static jmp_buf target;
__attribute__((noinline)) static void jump(int* counter) {
  if (++*counter < 10) longjmp(target, 1);
}
static void set_jump(void) {
  int* volatile counter = calloc(1, sizeof *counter);
  volatile int seen = 0;
  if (setjmp(target)) ++seen;
  jump(counter);
  REPORT("set_jump", (uint64_t)(seen * 100 + *counter));
}

static void variable_array(int n) {
  uint64_t h = 5;
  int* heap = malloc((size_t)n * sizeof *heap);
  int stack[n];
  for (int i = 0; i < n; ++i) stack[i] = heap[i] = i * 3;
  int* mixed = n > 100 ? heap : stack;
  for (int i = 0; i < n; ++i) mixed[i] += stack[n - 1 - i];
  for (int i = 0; i < n; ++i) h = mix(h, (uint64_t)(heap[i] + stack[i]));
  REPORT("variable_array", h);
}

struct node {
  struct node *left, *right;
  long key;
};
static struct node* insert(struct node* tree, long key) {
  if (!tree) {
    tree = malloc(sizeof *tree);
    *tree = (struct node){0, 0, key};
  } else if (key < tree->key) {
    tree->left = insert(tree->left, key);
  } else {
    tree->right = insert(tree->right, key);
  }
  return tree;
}
static uint64_t walk(const struct node* tree, uint64_t h) {
  return tree ? walk(tree->right, mix(walk(tree->left, h), (uint64_t)tree->key)) : h;
}
static void tree(void) {
  struct node* root = 0;
  for (int i = 0; i < 3000; ++i) root = insert(root, (long)(random_u64() % 100000));
  REPORT("tree", walk(root, 6));
}

int main(void) {
  widths();
  unaligned();
  misaligned();
  bit_fields();
  by_value();
  varargs();
  set_jump();
  variable_array(50);
  variable_array(5000);
  tree();
}
