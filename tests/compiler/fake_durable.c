// A runtime for tests of announcements alone: one persistent buffer, which keeps nothing. It holds what the program
// does to the buffer against abi/durable.h:
//
//   - a byte that changed was announced, and had not changed before the announcement;
//   - who writes back at each announcement what the same thread announced
//       before, and at the end the rest, has written back everything;
//   - what is announced lies in the buffer, and is no more than the program says it stores (fake_durable_check).
//
// Until a program opens the buffer every address is in the range: one
// that never does takes all calls, and must not notice.
//
// Threads: the announcement takes a lock; open and check are called while no other thread runs.
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/durable.h"
#include "trampoline.h"

#define kBytesMax ((size_t)1 << 20)
#define kThreadsMax 64

struct spw_durable_range __spw_durable_range_v1 = {0, UINTPTR_MAX};

static unsigned char* buffer;
static unsigned char shadow[kBytesMax];
static unsigned char announced[kBytesMax];
static size_t buffer_bytes;
static atomic_ulong calls;
static atomic_flag lock = ATOMIC_FLAG_INIT;

/* What would be on the medium, and each thread's last announcement, which it may not have stored yet. */
static unsigned char medium[kBytesMax];
static struct {
  size_t offset;
  size_t bytes;
} pending[kThreadsMax];
static int thread_count;
static _Thread_local int this_thread = -1;

static void fail(const char* what, const char* why, size_t offset) {
  fprintf(stderr, "fake durable: %s: %s at offset %zu\n", what, why, offset);
  _exit(1);
}

void* fake_durable_open(size_t bytes) {
  if (bytes > kBytesMax) fail("open", "too large", bytes);
  buffer = mmap(NULL, kBytesMax, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (buffer == MAP_FAILED) fail("open", "no memory", bytes);
  buffer_bytes = bytes;
  __spw_durable_range_v1.first = (uintptr_t)buffer;
  __spw_durable_range_v1.bytes = bytes;
  return buffer;
}

static void write_back(int thread) {
  memcpy(medium + pending[thread].offset, buffer + pending[thread].offset, pending[thread].bytes);
  pending[thread].bytes = 0;
}

// `exactly`: how many bytes have been announced since the last check; -1: not known.
void fake_durable_check(const char* what, long exactly) {
  for (int thread = 0; thread < thread_count; ++thread) write_back(thread);
  long count = 0;
  for (size_t i = 0; i < buffer_bytes; ++i) {
    if (buffer[i] != shadow[i] && !announced[i]) fail(what, "a store was not announced", i);
    if (buffer[i] != medium[i]) fail(what, "a store came after its announcement was written back", i);
    count += announced[i];
  }
  if (exactly >= 0 && count != exactly)
    fail(what, "announced bytes are not those stored, their number", (size_t)count);
  memcpy(shadow, buffer, buffer_bytes);
  memset(announced, 0, buffer_bytes);
}

__attribute__((used)) void fake_durable_store(const void* address, size_t bytes) {
  atomic_fetch_add(&calls, 1);
  if (!buffer) return;
  const size_t offset = (uintptr_t)address - (uintptr_t)buffer;
  if (offset > buffer_bytes || bytes > buffer_bytes - offset)
    fail("announcement", "not in the buffer", offset);
  while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) {
  }
  for (size_t i = offset; i < offset + bytes; ++i) {
    if (!announced[i] && buffer[i] != shadow[i]) fail("announcement", "comes after the store", i);
    announced[i] = 1;
  }
  if (this_thread < 0) this_thread = thread_count++;
  if (this_thread >= kThreadsMax) fail("announcement", "too many threads", offset);
  write_back(this_thread);
  pending[this_thread].offset = offset;
  pending[this_thread].bytes = bytes;
  atomic_flag_clear_explicit(&lock, memory_order_release);
}

__attribute__((destructor)) static void finish(void) {
  if (!atomic_load(&calls)) fail("end", "not one announcement", 0);
}

// It may be linked beside another fake runtime.
__attribute__((weak, visibility("hidden"))) int __spw_fake_vectors;
__attribute__((constructor(101))) static void start(void) { __spw_fake_vectors = fake_vectors(); }
SPW_FAKE_CLOBBER_CODE;
SPW_TRAMPOLINE("__spw_durable_store_v1", "fake_durable_store", "push %rax\n", "pop %rax\n");
