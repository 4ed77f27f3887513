// The functions of abi/calls.def for the fake runtime: bounced through plain memory, slow and simple.
// Also `free` and `operator delete`, which the real runtime interposes.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "fake_runtime.h"

void* __libc_malloc(size_t);
void __libc_free(void*);

#define kStringMax ((size_t)1 << 20)

static char peek(const char* p) {
  char c;
  fake_read(&c, p, 1);
  return c;
}

/* A plain copy of `bytes` at p (released by drop), or p itself when that is plain already. */
static void* lift(const void* p, size_t bytes) {
  if (!fake_is_managed(p)) return (void*)p;
  void* copy = __libc_malloc(bytes + 1);
  fake_read(copy, p, bytes);
  return copy;
}
static void drop(const void* p, void* copy) {
  if (copy != p) __libc_free(copy);
}

/* --- allocation --- */
void* __spw_malloc_v1(size_t n) { return fake_allocate(n, 16); }
void* __spw_calloc_v1(size_t n, size_t m) { return fake_allocate(n * m, 16); }
void* __spw_aligned_alloc_v1(size_t a, size_t n) { return fake_allocate(n, a); }
void* __spw_memalign_v1(size_t a, size_t n) { return fake_allocate(n, a); }
void* __spw_valloc_v1(size_t n) { return fake_allocate(n, 4096); }
int __spw_posix_memalign_v1(void** out, size_t a, size_t n) {
  void* p = fake_allocate(n, a);
  fake_write(out, &p, sizeof p);
  return 0;
}
void* __spw_memcpy_v1(void* to, const void* from, size_t n) {
  void* copy = __libc_malloc(n + 1);
  fake_read(copy, from, n);
  fake_write(to, copy, n);
  __libc_free(copy);
  return to;
}
void* __spw_memmove_v1(void* to, const void* from, size_t n) { return __spw_memcpy_v1(to, from, n); }
void* __spw_mempcpy_v1(void* to, const void* from, size_t n) {
  return (char*)__spw_memcpy_v1(to, from, n) + n;
}
void* __spw_memset_v1(void* to, int c, size_t n) {
  void* bytes = __libc_malloc(n + 1);
  memset(bytes, c, n);
  fake_write(to, bytes, n);
  __libc_free(bytes);
  return to;
}
void* __spw_realloc_v1(void* p, size_t n) {
  if (p && !fake_is_managed(p)) return realloc(p, n);
  void* bigger = fake_allocate(n, 16);
  if (p) __spw_memcpy_v1(bigger, p, fake_size(p) < n ? fake_size(p) : n);
  return bigger;
}
void* __spw_reallocarray_v1(void* p, size_t n, size_t m) { return __spw_realloc_v1(p, n * m); }
void* __spw_mmap_v1(void* a, size_t n, int prot, int flags, int file, off_t offset) {
  if (flags & MAP_ANONYMOUS && !(flags & MAP_FIXED)) return fake_allocate(n, 4096);
  return mmap(a, n, prot, flags, file, offset);
}
void* __spw_mmap64_v1(void* a, size_t n, int prot, int flags, int file, off_t offset) {
  return __spw_mmap_v1(a, n, prot, flags, file, offset);
}
void free(void* p) {
  if (!fake_is_managed(p)) __libc_free(p);
}
#define SPW_NEW(name, arguments, alignment) \
  void* __spw_##name##_v1 arguments { return fake_allocate(n, alignment); }
SPW_NEW(_Znwm, (size_t n), 16)
SPW_NEW(_Znam, (size_t n), 16)
SPW_NEW(_ZnwmRKSt9nothrow_t, (size_t n, void* t), ((void)t, 16))
SPW_NEW(_ZnamRKSt9nothrow_t, (size_t n, void* t), ((void)t, 16))
SPW_NEW(_ZnwmSt11align_val_t, (size_t n, size_t a), a)
SPW_NEW(_ZnamSt11align_val_t, (size_t n, size_t a), a)
SPW_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t n, size_t a, void* t), ((void)t, a))
SPW_NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t n, size_t a, void* t), ((void)t, a))
void _ZdlPv(void* p) { free(p); }
void _ZdaPv(void* p) { free(p); }
void _ZdlPvm(void* p, size_t n) { (void)n, free(p); }
void _ZdaPvm(void* p, size_t n) { (void)n, free(p); }
void _ZdlPvSt11align_val_t(void* p, size_t a) { (void)a, free(p); }
void _ZdlPvmSt11align_val_t(void* p, size_t n, size_t a) { (void)n, (void)a, free(p); }

/* --- bytes --- */
int __spw_memcmp_v1(const void* a, const void* b, size_t n) {
  void *x = lift(a, n), *y = lift(b, n);
  const int order = memcmp(x, y, n);
  drop(a, x), drop(b, y);
  return order;
}
int __spw_bcmp_v1(const void* a, const void* b, size_t n) { return __spw_memcmp_v1(a, b, n); }
void* __spw_memchr_v1(const void* p, int c, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (peek((const char*)p + i) == (char)c) return (char*)p + i;
  return NULL;
}
void* __spw_memrchr_v1(const void* p, int c, size_t n) {
  while (n--)
    if (peek((const char*)p + n) == (char)c) return (char*)p + n;
  return NULL;
}
void* __spw_rawmemchr_v1(const void* p, int c) { return __spw_memchr_v1(p, c, SIZE_MAX); }
void* __spw_memmem_v1(const void* p, size_t n, const void* q, size_t m) {
  for (size_t i = 0; i + m <= n; ++i)
    if (!__spw_memcmp_v1((const char*)p + i, q, m)) return (char*)p + i;
  return NULL;
}

/* --- strings --- */
size_t __spw_strnlen_v1(const char* s, size_t n) {
  size_t i = 0;
  while (i < n && peek(s + i)) ++i;
  return i;
}
size_t __spw_strlen_v1(const char* s) { return __spw_strnlen_v1(s, SIZE_MAX); }
#define SPW_COMPARE(name, parameters, n, call)                                               \
  int __spw_##name##_v1 parameters {                                                         \
    char *x = lift(a, __spw_strnlen_v1(a, n) + 1), *y = lift(b, __spw_strnlen_v1(b, n) + 1); \
    const int order = call;                                                                  \
    drop(a, x), drop(b, y);                                                                  \
    return order;                                                                            \
  }
SPW_COMPARE(strcmp, (const char* a, const char* b), kStringMax, strcmp(x, y))
SPW_COMPARE(strncmp, (const char* a, const char* b, size_t n), n, strncmp(x, y, n))
SPW_COMPARE(strcasecmp, (const char* a, const char* b), kStringMax, strcasecmp(x, y))
SPW_COMPARE(strncasecmp, (const char* a, const char* b, size_t n), n, strncasecmp(x, y, n))
char* __spw_strchrnul_v1(const char* s, int c) {
  while (peek(s) && peek(s) != (char)c) ++s;
  return (char*)s;
}
char* __spw_strchr_v1(const char* s, int c) {
  s = __spw_strchrnul_v1(s, c);
  return peek(s) == (char)c ? (char*)s : NULL;
}
char* __spw_strrchr_v1(const char* s, int c) { return __spw_memrchr_v1(s, c, __spw_strlen_v1(s) + 1); }
char* __spw_strstr_v1(const char* s, const char* t) {
  return __spw_memmem_v1(s, __spw_strlen_v1(s), t, __spw_strlen_v1(t));
}
char* __spw_stpcpy_v1(char* to, const char* from) {
  const size_t n = __spw_strlen_v1(from);
  __spw_memcpy_v1(to, from, n + 1);
  return to + n;
}
char* __spw_strcpy_v1(char* to, const char* from) { return __spw_stpcpy_v1(to, from), to; }
char* __spw_strncpy_v1(char* to, const char* from, size_t n) {
  const size_t m = __spw_strnlen_v1(from, n);
  __spw_memcpy_v1(to, from, m);
  __spw_memset_v1(to + m, 0, n - m);
  return to;
}
char* __spw_strcat_v1(char* to, const char* from) {
  return __spw_strcpy_v1(to + __spw_strlen_v1(to), from), to;
}
char* __spw_strncat_v1(char* to, const char* from, size_t n) {
  char* end = to + __spw_strlen_v1(to);
  const size_t m = __spw_strnlen_v1(from, n);
  __spw_memcpy_v1(end, from, m);
  __spw_memset_v1(end + m, 0, 1);
  return to;
}
char* __spw_strndup_v1(const char* s, size_t n) {
  n = __spw_strnlen_v1(s, n);
  char* copy = fake_allocate(n + 1, 16);
  __spw_memcpy_v1(copy, s, n);
  return copy; /* fresh memory is zero */
}
char* __spw_strdup_v1(const char* s) { return __spw_strndup_v1(s, SIZE_MAX); }

/* --- sorting: insertion sort on the managed array itself, so that the comparison sees managed addresses ---
 */
void __spw_qsort_v1(void* base, size_t n, size_t size, int (*compare)(const void*, const void*)) {
  char* held = fake_allocate(size, 16);
  for (size_t i = 1; i < n; ++i) {
    size_t j = i;
    __spw_memcpy_v1(held, (char*)base + i * size, size);
    for (; j && compare((char*)base + (j - 1) * size, held) > 0; --j)
      __spw_memcpy_v1((char*)base + j * size, (char*)base + (j - 1) * size, size);
    __spw_memcpy_v1((char*)base + j * size, held, size);
  }
}
void* __spw_bsearch_v1(const void* key, const void* base, size_t n, size_t size,
                       int (*compare)(const void*, const void*)) {
  size_t low = 0;
  while (low < n) {
    const size_t middle = low + (n - low) / 2;
    const char* at = (const char*)base + middle * size;
    const int order = compare(key, at);
    if (!order) return (void*)at;
    if (order < 0)
      n = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

/* --- files --- */
size_t __spw_fread_v1(void* p, size_t size, size_t n, FILE* file) {
  void* bytes = __libc_malloc(size * n + 1);
  const size_t got = fread(bytes, size, n, file);
  fake_write(p, bytes, got * size);
  __libc_free(bytes);
  return got;
}
size_t __spw_fwrite_v1(const void* p, size_t size, size_t n, FILE* file) {
  void* bytes = lift(p, size * n);
  const size_t done = fwrite(bytes, size, n, file);
  drop(p, bytes);
  return done;
}
int __spw_fputs_v1(const char* s, FILE* file) {
  __spw_fwrite_v1(s, 1, __spw_strlen_v1(s), file);
  return 0;
}
int __spw_puts_v1(const char* s) { return __spw_fputs_v1(s, stdout), fputc('\n', stdout); }
char* __spw_fgets_v1(char* s, int n, FILE* file) {
  char* bytes = __libc_malloc((size_t)n);
  char* got = fgets(bytes, n, file);
  if (got) fake_write(s, got, strlen(got) + 1);
  __libc_free(bytes);
  return got ? s : NULL;
}
ssize_t __spw_getrandom_v1(void* p, size_t n, unsigned flags) {
  char* bytes = __libc_malloc(n + 1);
  const ssize_t got = getrandom(bytes, n, flags);
  if (got > 0) fake_write(p, bytes, (size_t)got);
  __libc_free(bytes);
  return got;
}
ssize_t __spw_getline_v1(char** line, size_t* n, FILE* file) {
  (void)line, (void)n, (void)file;
  errno = ENOSYS;
  return -1;
}
