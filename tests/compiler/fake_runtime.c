#define _GNU_SOURCE
#include "fake_runtime.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trampoline.h"

#define kSpaceBytes ((size_t)1 << 32)
#define kGranules (kSpaceBytes / SPW_GRANULE_BYTES)
#define kFrames (kGranules / 2)
#define kFreeFramesMin 4096 /* so many others are used before a frame is again */
#define kTableEntries 2
#define kDeferred (SPW_STABLE_TRANSLATIONS - 1)
#define kPoison 0xDB

char SPW_ABI_VERSION_SYMBOL;

struct granule {
  uint32_t frame; /* + 1; 0: never touched */
  uint32_t pins;
  bool mapped; /* at its own address, for foreign code */
};

/* What a thread holds pinned: its table and what fell out of it lately. */
struct private_state {
  struct __spw_satc_entry table[kTableEntries];
  uint32_t deferred[kDeferred];
  unsigned deferred_next;
  char across[SPW_ACCESS_BYTES_MAX];
};

static struct __spw_satc_entry empty_table[1];
__attribute__((tls_model("initial-exec"))) _Thread_local struct __spw_thread __spw_thread_v1 = {empty_table,
                                                                                                0, 0};
static _Thread_local struct private_state own;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct granule* granules;
static uint32_t* sizes; /* of the allocation that starts at each 16 bytes */
static char* frames;
static int frames_file;
static uint32_t free_frames[kFrames];
static uint64_t free_first, free_end;
static uint32_t frames_ever; /* in use or free; the kernel has not had to find memory for the rest */
static size_t allocated = SPW_GRANULE_BYTES; /* granule 0 is never handed out */

static void fail(const char* why) {
  fprintf(stderr, "fake runtime: %s\n", why);
  abort();
}

static char* managed_at(uint32_t g) { return (char*)(SPW_MANAGED_BASE + (uintptr_t)g * SPW_GRANULE_BYTES); }
static char* frame_at(uint32_t frame) { return frames + (size_t)frame * SPW_GRANULE_BYTES; }
static uint32_t granule_of(const void* p) { return (uint32_t)((uintptr_t)p >> SPW_GRANULE_SHIFT); }

/* With the lock held: now and then code is told to run its other version. */
static void turn_over_sometimes(unsigned one_in) {
  static uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  char* version_switch = (char*)SPW_VERSION_SWITCH;
  if ((state >> 16) % one_in == 0) __atomic_store_n(version_switch, !*version_switch, __ATOMIC_RELAXED);
}

/* Frames are handed out in an order in which neighbours never follow each other. */
static uint32_t take_frame(void) {
  if (free_end - free_first < kFreeFramesMin && frames_ever < kFrames)
    free_frames[free_end++ % kFrames] = frames_ever++ ^ 1;
  if (free_first == free_end) fail("out of frames");
  return free_frames[free_first++ % kFrames];
}

static char* data_of(uint32_t g) {
  if (g >= kGranules) fail("access outside of what was allocated");
  if (!granules[g].frame) {
    granules[g].frame = take_frame() + 1;
    memset(frame_at(granules[g].frame - 1), 0, SPW_GRANULE_BYTES);
  }
  return frame_at(granules[g].frame - 1);
}

static void unpin(uint32_t g) {
  if (!g || --granules[g].pins) return;
  if (granules[g].mapped) {
    if (mmap(managed_at(g), SPW_GRANULE_BYTES, PROT_NONE,
             MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
      fail("unmapping a frame");
    granules[g].mapped = false;
  }
  const uint32_t old = granules[g].frame - 1;
  const uint32_t new = take_frame();
  memcpy(frame_at(new), frame_at(old), SPW_GRANULE_BYTES);
  memset(frame_at(old), kPoison, SPW_GRANULE_BYTES);
  granules[g].frame = new + 1;
  free_frames[free_end++ % kFrames] = old;
}

static char* pin(uint32_t g) {
  char* data = data_of(g);
  ++granules[g].pins;
  return data;
}

/* Puts the granule of `p` into the thread's table and returns the raw address. */
static char* install(const void* p, bool is_store) {
  __spw_thread_v1.direct = own.table;
  __spw_thread_v1.direct_mask_bytes = (kTableEntries - 1) << 4;
  const uint32_t g = granule_of(p);
  struct __spw_satc_entry* entry = &own.table[g % kTableEntries];
  if (entry->read_tag != g) {
    uint32_t* slot = &own.deferred[own.deferred_next++ % kDeferred];
    unpin(*slot);
    *slot = entry->read_tag;
    entry->delta = (uint64_t)pin(g) - (uint64_t)managed_at(g);
    entry->read_tag = g;
    entry->write_tag = 0;
  }
  if (is_store) entry->write_tag = g;
  turn_over_sometimes(64);
  return (char*)((uintptr_t)p + entry->delta);
}

static bool crosses(const void* p, size_t size) {
  return granule_of(p) != granule_of((const char*)p + size - 1);
}

/* Pieces of [p, p + bytes) that lie in one granule each. */
static size_t piece(const void* p, size_t bytes) {
  const size_t left = SPW_GRANULE_BYTES - (uintptr_t)p % SPW_GRANULE_BYTES;
  return left < bytes ? left : bytes;
}

static void copy_locked(char* managed, char* plain, size_t bytes, bool to_managed) {
  while (bytes) {
    const size_t n = piece(managed, bytes);
    char* raw = data_of(granule_of(managed)) + (uintptr_t)managed % SPW_GRANULE_BYTES;
    memcpy(to_managed ? raw : plain, to_managed ? plain : raw, n);
    managed += n;
    plain += n;
    bytes -= n;
  }
}

void fake_read(void* plain, const void* from, size_t bytes) {
  if (!fake_is_managed(from)) {
    memmove(plain, from, bytes);
    return;
  }
  pthread_mutex_lock(&lock);
  copy_locked((char*)from, plain, bytes, false);
  pthread_mutex_unlock(&lock);
}

void fake_write(void* to, const void* plain, size_t bytes) {
  if (!fake_is_managed(to)) {
    memmove(to, plain, bytes);
    return;
  }
  pthread_mutex_lock(&lock);
  copy_locked(to, (char*)plain, bytes, true);
  pthread_mutex_unlock(&lock);
}

/* The C sides of the trampolines below. */
void* fake_load(const void* p, size_t size) {
  if (!fake_is_managed(p)) fail("load of an address that is not managed");
  if (size > SPW_ACCESS_BYTES_MAX) fail("load too wide");
  pthread_mutex_lock(&lock);
  char* raw = own.across;
  if (crosses(p, size))
    copy_locked((char*)p, raw, size, false);
  else
    raw = install(p, false);
  pthread_mutex_unlock(&lock);
  return raw;
}

void* fake_store(void* p, size_t size) {
  if (!fake_is_managed(p)) fail("store to an address that is not managed");
  if (size > SPW_ACCESS_BYTES_MAX || crosses(p, size)) fail("store too wide or across");
  pthread_mutex_lock(&lock);
  char* raw = install(p, true);
  pthread_mutex_unlock(&lock);
  return raw;
}

void* fake_span(void* p, size_t size, uint64_t is_store) {
  if (!fake_is_managed(p)) fail("span of an address that is not managed");
  if (size > SPW_GRANULE_BYTES || !crosses(p, size)) fail("span too wide or not across");
  pthread_mutex_lock(&lock);
  char* raw = install(p, is_store);
  char* last = install((char*)p + size - 1, is_store);
  pthread_mutex_unlock(&lock);
  return last - raw == (ptrdiff_t)size - 1 ? raw : NULL;
}

void fake_store_across(void* p, const void* bytes, size_t size) {
  if (!fake_is_managed(p)) fail("store across to an address that is not managed");
  if (size > SPW_ACCESS_BYTES_MAX) fail("store across too wide");
  pthread_mutex_lock(&lock);
  if (!crosses(p, size)) install(p, true);
  copy_locked(p, (char*)bytes, size, true);
  pthread_mutex_unlock(&lock);
}

void* fake_allocate(size_t bytes, size_t alignment) {
  pthread_mutex_lock(&lock);
  if (alignment < 16) alignment = 16;
  allocated = (allocated + alignment - 1) & -alignment;
  char* p = (char*)SPW_MANAGED_BASE + allocated;
  allocated += bytes + 1;
  if (allocated > kSpaceBytes) fail("out of managed space");
  sizes[(p - (char*)SPW_MANAGED_BASE) / 16] = (uint32_t)bytes;
  pthread_mutex_unlock(&lock);
  return p;
}

size_t fake_size(const void* p) { return sizes[((uintptr_t)p - SPW_MANAGED_BASE) / 16]; }

static void on_fault(int signal_number, siginfo_t* info, void* context) {
  (void)context;
  if (!fake_is_managed(info->si_addr)) {
    signal(signal_number, SIG_DFL);
    return;
  }
  const uint32_t g = granule_of(info->si_addr);
  pthread_mutex_lock(&lock);
  install(info->si_addr, true);
  turn_over_sometimes(8);
  const off_t offset = data_of(g) - frames;
  if (mmap(managed_at(g), SPW_GRANULE_BYTES, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, frames_file,
           offset) == MAP_FAILED)
    fail("mapping a frame for foreign code");
  granules[g].mapped = true;
  pthread_mutex_unlock(&lock);
}

static void* reserve(size_t bytes) {
  void* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) fail("mmap");
  return p;
}

__attribute__((constructor(101))) static void start(void) {
  if (mmap((void*)SPW_MANAGED_BASE, kSpaceBytes, PROT_NONE,
           MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
           0) != (void*)SPW_MANAGED_BASE)
    fail("reserving managed space");
  /* Of the fake for hints it is a part, in programs that have both. */
  if (mmap((void*)SPW_VERSION_SWITCH, SPW_GRANULE_BYTES, PROT_READ | PROT_WRITE,
           MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != (void*)SPW_VERSION_SWITCH &&
      errno != EEXIST)
    fail("mapping the switch");
  granules = reserve(kGranules * sizeof *granules);
  sizes = reserve(kSpaceBytes / 16 * sizeof *sizes);
  frames_file = memfd_create("frames", 0);
  if (frames_file < 0 || ftruncate(frames_file, (off_t)kFrames * SPW_GRANULE_BYTES)) fail("memfd");
  frames = mmap(NULL, kFrames * SPW_GRANULE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                frames_file, 0);
  if (frames == MAP_FAILED) fail("mapping frames");
  for (uint32_t i = 0; i < kFreeFramesMin; ++i)
    free_frames[i] = i * 1021 % kFreeFramesMin; /* 1021 is odd: a permutation */
  free_end = frames_ever = kFreeFramesMin;
  __spw_fake_vectors = fake_vectors();
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
}

SPW_FAKE_CLOBBER;
SPW_TRAMPOLINE("__spw_load_v1", "fake_load", "", "");
SPW_TRAMPOLINE("__spw_store_v1", "fake_store", "", "");
SPW_TRAMPOLINE("__spw_span_v1", "fake_span", "", "");
SPW_TRAMPOLINE("__spw_store_across_v1", "fake_store_across", "push %rax\n", "pop %rax\n");
