// Raw addresses for tests of hints alone (fake_hints.c). The program's heap is a memory file here, mapped once where
// the program knows it and once more for each site of each thread, without access. An address that code asks for is
// one of the mapping of its site, where nothing but the pages of the bytes that it named can be touched, and that only
// until the thread asks from the same or a lower site: code that goes beyond either faults.
//
// Limits: HEAP_BYTES of memory, of which what is freed is used again for the same power of two; raw addresses for
// kThreads threads.
#define _GNU_SOURCE
#include "fake_reach.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/hints.h"

#define HEAP_BYTES ((size_t)1 << 30)
#define PAGE ((uintptr_t)4096)
#define kThreads 16
#define kClasses 40
#define kHeader 16

static char* heap;
static char* raw_of_thread; /* kThreads * SPW_REACHES_MAX mappings side by side */
static size_t used;
static void* freed[kClasses];
static atomic_flag lock = ATOMIC_FLAG_INIT;
static atomic_uint threads;

struct Hold {
  char* first;
  size_t bytes;
};
static _Thread_local struct Hold holds[SPW_REACHES_MAX];
static _Thread_local unsigned thread_number; /* + 1 */

static void die(const char* why) {
  (void)!write(2, why, strlen(why));
  _exit(1);
}

static void open_heap(void) {
  const int fd = memfd_create("fake-heap", 0);
  if (fd < 0 || ftruncate(fd, HEAP_BYTES)) die("fake reach: no memory file\n");
  heap = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  const size_t copies = kThreads * SPW_REACHES_MAX;
  raw_of_thread =
      mmap(NULL, copies * HEAP_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (heap == MAP_FAILED || raw_of_thread == MAP_FAILED) die("fake reach: no address space\n");
  for (size_t i = 0; i < copies; ++i)
    if (mmap(raw_of_thread + i * HEAP_BYTES, HEAP_BYTES, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
             fd, 0) == MAP_FAILED)
      die("fake reach: mapping the heap once more\n");
}

uintptr_t fake_heap(void) {
  free(malloc(1));
  return (uintptr_t)heap;
}

static void* take(size_t bytes, size_t alignment) {
  unsigned class = 6;
  while (((size_t)1 << class) < bytes + alignment + kHeader) ++class;
  while (atomic_flag_test_and_set(&lock)) {
  }
  if (!heap) open_heap();
  char* chunk = freed[class];
  if (chunk) {
    freed[class] = *(void**)chunk;
  } else {
    chunk = heap + used;
    used += (size_t)1 << class;
    if (used > HEAP_BYTES) die("fake reach: out of memory\n");
  }
  atomic_flag_clear(&lock);
  char* p = (char*)(((uintptr_t)chunk + kHeader + alignment - 1) & ~(alignment - 1));
  ((uint32_t*)p)[-1] = class;
  ((uint32_t*)p)[-2] = (uint32_t)(p - chunk);
  return p;
}

static char* chunk_of(void* p) { return (char*)p - ((uint32_t*)p)[-2]; }
static size_t room_of(void* p) { return ((size_t)1 << ((uint32_t*)p)[-1]) - ((uint32_t*)p)[-2]; }

void* malloc(size_t bytes) { return take(bytes, kHeader); }
void free(void* p) {
  if (!p) return;
  char* chunk = chunk_of(p);
  const unsigned class = ((uint32_t*)p)[-1];
  while (atomic_flag_test_and_set(&lock)) {
  }
  *(void**)chunk = freed[class];
  freed[class] = chunk;
  atomic_flag_clear(&lock);
}
void* calloc(size_t count, size_t each) {
  void* p = take(count * each, kHeader);
  return memset(p, 0, count * each);
}
void* realloc(void* p, size_t bytes) {
  if (!p) return malloc(bytes);
  if (bytes <= room_of(p)) return p;
  void* more = malloc(bytes);
  memcpy(more, p, room_of(p));
  free(p);
  return more;
}
void* memalign(size_t alignment, size_t bytes) {
  return take(bytes, alignment < kHeader ? kHeader : alignment);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  *out = memalign(alignment, bytes);
  return 0;
}

static char* raw_base(unsigned site) {
  return raw_of_thread + ((size_t)(thread_number - 1) * SPW_REACHES_MAX + site) * HEAP_BYTES;
}

static void protect(char* first, size_t bytes, int rights) {
  if (mprotect(first, bytes, rights)) die("fake reach: mprotect\n");
}

void* fake_reach(void* address, uint64_t bytes_and_site, int is_loose) {
  const size_t bytes = bytes_and_site & (((uint64_t)1 << SPW_SITE_SHIFT) - 1);
  const size_t site = bytes_and_site >> SPW_SITE_SHIFT;
  if (site >= SPW_REACHES_MAX || (bytes == 0 && site != 0)) die("fake reach: a site that is none\n");
  const int saved = errno;
  for (size_t i = site; i < SPW_REACHES_MAX; ++i) {
    if (holds[i].first) protect(holds[i].first, holds[i].bytes, PROT_NONE);
    holds[i].first = NULL;
  }
  if (!thread_number) thread_number = atomic_fetch_add(&threads, 1) + 1;
  const uintptr_t offset = (uintptr_t)address - (uintptr_t)heap;
  if (bytes == 0 || !is_loose || !heap || offset >= HEAP_BYTES || thread_number > kThreads ||
      offset / PAGE != (offset + bytes - 1) / PAGE)
    return address;
  holds[site] = (struct Hold){raw_base((unsigned)site) + (offset & ~(PAGE - 1)), PAGE};
  protect(holds[site].first, holds[site].bytes, PROT_READ | PROT_WRITE);
  errno = saved;
  return raw_base((unsigned)site) + offset;
}
