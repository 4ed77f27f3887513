// A runtime for tests of hints alone. Nothing is managed here: memory is the program's own, and only the hint table is
// made up, to send programs through every path of the pass. A thread turns the switch over all the time; hint bytes of
// the heap start at random and change with every call; calls clobber all that they may and turn the switch over, too.
//
// A program that ran for a while and never called was not compiled for hints: that is a failure.
//
// Environment: SPW_FAKE_HINTS=0 (the switch stays 0, hints too), =1 (the switch stays 1, hints are 0): to measure with.
// Threads: hint bytes and the switch are written as the real runtime writes them, racily.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "abi/hints.h"
#include "fake_reach.h"
#include "trampoline.h"

#define kTurnNs 20000
/* Pieces above the program's break, and below the first mapping, that start with random bytes. */
#define kRandomPieces 65536

char SPW_HINTS_VERSION_SYMBOL;

static volatile int8_t* const table = (volatile int8_t*)SPW_HINT_OFFSET;
static atomic_ulong calls;
static int is_still;

static void fail(const char* why) {
  fprintf(stderr, "fake hints: %s\n", why);
  _exit(1);
}

static uint32_t random_u32(void) {
  static _Thread_local uint32_t state = 2463534242u;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

static int8_t random_hint(void) {
  const uint32_t r = random_u32();
  return r % 3 == 0 ? 0 : r % 3 == 1 ? SPW_HINT_CLEAN : (int8_t)(0x80 | r >> 24);
}

static void turn_over(void) { table[0] = !table[0]; }

static void called_for(const void* p) {
  if ((uintptr_t)p >> SPW_HINT_ADDRESS_BITS) fail("an address without a hint byte");
  if (is_still) return;
  atomic_fetch_add(&calls, 1);
  const uintptr_t piece = (uintptr_t)p >> SPW_HINT_SHIFT;
  if (piece > 1) {
    table[piece] = random_hint();
    table[piece ^ 1] = random_hint();
  }
  if (random_u32() % 4 == 0) turn_over();
}

__attribute__((used)) void fake_hint_load(const void* p) { called_for(p); }
__attribute__((used)) void fake_hint_store(const void* p) { called_for(p); }
__attribute__((used)) void* fake_reach_any(void* p, uint64_t bytes_and_site) {
  called_for(p);
  return fake_reach(p, bytes_and_site, !is_still && random_u32() % 4 != 0);
}
void __spw_hint_range_v1(const void* p, uint64_t bytes, uint64_t is_store) {
  if (bytes < SPW_HINT_RANGE_BYTES_MIN || is_store > 1) fail("a range that is none");
  called_for(p);
}
void __spw_hint_stream_v1(const void* p, uint64_t bytes, uint64_t is_store) {
  if (bytes < SPW_HINT_STREAM_BYTES_MIN || is_store > 1) fail("a stream that is none");
  called_for(p);
}

static void* keep_turning(void* unused) {
  const struct timespec pause = {0, kTurnNs};
  for (;;) {
    nanosleep(&pause, NULL);
    if (atomic_load(&calls)) turn_over(); /* or a short program may end without a call */
  }
  return unused;
}

static void start_at_random(uintptr_t first_piece) {
  for (uintptr_t i = 0; i < kRandomPieces; ++i) table[first_piece + i] = random_hint();
}

__attribute__((constructor(101))) static void start(void) {
  if (mmap((void*)SPW_HINT_OFFSET, SPW_HINT_TABLE_BYTES, PROT_READ | PROT_WRITE,
           MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != (void*)SPW_HINT_OFFSET)
    fail("mapping the hint table");
  __spw_fake_vectors = fake_vectors();
  const char* mode = getenv("SPW_FAKE_HINTS");
  if (mode) {
    is_still = 1;
    table[0] = *mode == '1';
    return;
  }
  start_at_random((uintptr_t)sbrk(0) >> SPW_HINT_SHIFT);
  start_at_random(fake_heap() >> SPW_HINT_SHIFT);
  start_at_random(
      ((uintptr_t)mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) >> SPW_HINT_SHIFT) -
      kRandomPieces);
  table[0] = 1;
  pthread_t thread;
  if (pthread_create(&thread, NULL, keep_turning, NULL)) fail("starting a thread");
  pthread_detach(thread);
}

__attribute__((destructor)) static void finish(void) {
  if (!is_still && !atomic_load(&calls)) fail("not one hint called");
}

SPW_FAKE_CLOBBER;
SPW_TRAMPOLINE("__spw_hint_load_v1", "fake_hint_load", "push %rax\n", "pop %rax\n");
SPW_TRAMPOLINE("__spw_hint_store_v1", "fake_hint_store", "push %rax\n", "pop %rax\n");
SPW_TRAMPOLINE("__spw_reach_load_v1", "fake_reach_any", "", "");
SPW_TRAMPOLINE("__spw_reach_store_v1", "fake_reach_any", "", "");
