/* libspillway_numpy.so: numpy's allocations of at least a threshold as regions of libspillway.so (NEP 49).
 *
 * The Python package loads it by ctypes, tells it two functions of the C API, asks it for a handler and gives that to
 * numpy, in a capsule. It needs nothing of Python, and works with every numpy since 1.22.
 *
 * Invariants: an allocation is a region if and only if its address is in the table; a smaller one is malloc's.
 * Threads: any; the table has a lock, which is not held while memory is mapped, given back or copied.
 * Fork: a child forgets regions of its parent's instead of giving them back, since in some configurations no child may
 * touch them (spillway-regions(7)); its copy of them ends with it.
 * Lifetime: handlers are never freed: arrays keep the one that they were made with.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef int map_function(const char* store, uint64_t offset, size_t length, unsigned flags,
                         size_t block_bytes, void** address);
typedef int unmap_function(void* address);

/* PyDataMem_Handler of numpy's headers, version 1. */
struct allocator {
  void* context;
  void* (*allocate)(void* context, size_t bytes);
  void* (*allocate_zeros)(void* context, size_t count, size_t bytes);
  void* (*reallocate)(void* context, void* memory, size_t bytes);
  void (*release)(void* context, void* memory, size_t bytes);
};
struct handler {
  char name[127];
  uint8_t version;
  struct allocator allocator;
};

/* A hash table of the live regions: open addressing, at most half full. */
struct region {
  void* address; /* NULL: an empty place */
  size_t bytes;
  uint64_t forks; /* of the process that mapped it */
};

static map_function* g_map;
static unmap_function* g_unmap;
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static struct region* g_table;
static size_t g_places, g_regions;
static uint64_t g_forks;

enum { kPlacesAtFirst = 256 };

static size_t place_of(const void* address, size_t places) {
  return (size_t)(((uintptr_t)address >> 12) * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (places - 1);
}

/* Where `address` is, or the empty place where it would be. */
static size_t find(const struct region* table, size_t places, const void* address) {
  size_t at = place_of(address, places);
  while (table[at].address && table[at].address != address) at = (at + 1) & (places - 1);
  return at;
}

static int make_room(void) {
  if (g_places != 0 && (g_regions + 1) * 2 <= g_places) return 1;
  const size_t places = g_places ? g_places * 2 : kPlacesAtFirst;
  struct region* table = calloc(places, sizeof *table);
  if (!table) return 0;
  for (size_t i = 0; i < g_places; ++i)
    if (g_table[i].address) table[find(table, places, g_table[i].address)] = g_table[i];
  free(g_table);
  g_table = table;
  g_places = places;
  return 1;
}

/* Empties a place, and moves those behind it that could not be found any more. */
static void empty_place(size_t at) {
  g_table[at].address = NULL;
  --g_regions;
  for (size_t i = (at + 1) & (g_places - 1); g_table[i].address; i = (i + 1) & (g_places - 1)) {
    const struct region moved = g_table[i];
    g_table[i].address = NULL;
    g_table[find(g_table, g_places, moved.address)] = moved;
  }
}

static int add(void* address, size_t bytes) {
  pthread_mutex_lock(&g_lock);
  const int has_room = make_room();
  if (has_room) {
    g_table[find(g_table, g_places, address)] = (struct region){address, bytes, g_forks};
    ++g_regions;
  }
  pthread_mutex_unlock(&g_lock);
  return has_room;
}

/* 1, and what it is, when `address` is a region; `take`: it is none of the table's from then on. */
static int look_up(const void* address, int take, struct region* out) {
  if (!address) return 0;
  pthread_mutex_lock(&g_lock);
  int found = 0;
  if (g_places != 0) {
    const size_t at = find(g_table, g_places, address);
    found = g_table[at].address != NULL;
    if (found) {
      *out = g_table[at];
      out->forks = g_forks - out->forks; /* since then */
      if (take) empty_place(at);
    }
  }
  pthread_mutex_unlock(&g_lock);
  return found;
}

static void* map_region(size_t bytes) {
  void* address = NULL;
  if (g_map(NULL, 0, bytes, 0, 0, &address) != 0) return NULL;
  if (add(address, bytes)) return address;
  g_unmap(address);
  return NULL;
}

static int is_large(const void* context, size_t bytes) { return bytes >= (uintptr_t)context; }

static void* allocate(void* context, size_t bytes) {
  return is_large(context, bytes) ? map_region(bytes) : malloc(bytes);
}

static void* allocate_zeros(void* context, size_t count, size_t bytes) {
  size_t all;
  if (__builtin_mul_overflow(count, bytes, &all)) return NULL;
  return is_large(context, all) ? map_region(all) : calloc(count, bytes);
}

static void release(void* context, void* memory, size_t bytes) {
  (void)context;
  (void)bytes;
  struct region region;
  if (!look_up(memory, 1, &region))
    free(memory);
  else if (region.forks == 0)
    g_unmap(memory);
}

static void* reallocate(void* context, void* memory, size_t bytes) {
  struct region region;
  const int was_region = look_up(memory, 0, &region);
  if (!was_region && !is_large(context, bytes)) return realloc(memory, bytes);
  if (was_region && is_large(context, bytes) && bytes <= region.bytes) return memory;
  void* moved = allocate(context, bytes);
  if (!moved) return NULL;
  const size_t had = was_region ? region.bytes : malloc_usable_size(memory);
  if (memory) memcpy(moved, memory, had < bytes ? had : bytes);
  release(context, memory, 0);
  return moved;
}

static void before_fork(void) { pthread_mutex_lock(&g_lock); }
static void after_fork_in_parent(void) { pthread_mutex_unlock(&g_lock); }
static void after_fork_in_child(void) {
  ++g_forks;
  pthread_mutex_unlock(&g_lock);
}

/* Once, before any other function. 0 or a positive errno. */
EXPORTED int spillway_numpy_begin(map_function* map, unmap_function* unmap) {
  g_map = map;
  g_unmap = unmap;
  return pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
}

/* numpy's PyDataMem_Handler for allocations of at least `threshold_bytes`. NULL: there is no memory. */
EXPORTED struct handler* spillway_numpy_handler(size_t threshold_bytes) {
  struct handler* handler = calloc(1, sizeof *handler);
  if (!handler) return NULL;
  strcpy(handler->name, "spillway");
  handler->version = 1;
  handler->allocator = (struct allocator){(void*)(uintptr_t)threshold_bytes, &allocate, &allocate_zeros,
                                          &reallocate, &release};
  return handler;
}

/* How many regions there are now. */
EXPORTED size_t spillway_numpy_regions(void) {
  pthread_mutex_lock(&g_lock);
  const size_t regions = g_regions;
  pthread_mutex_unlock(&g_lock);
  return regions;
}
