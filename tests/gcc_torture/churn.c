// Linked to a program, has everything that it allocates evicted: a thread that walks through more managed memory than
// the cap holds, for as long as the program runs. main() begins when all of what constructors allocated has been
// evicted once.
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { kBytes = 12 << 20, kStep = 4096 };  // one and a half of the cap (gcc_torture_test.py)

static size_t walked;  // in steps

static void* walk(void* unused) {
  (void)unused;
  volatile char* bytes = malloc(kBytes);
  for (size_t i = 0;; i = (i + kStep) % kBytes) {
    ++bytes[i];
    __atomic_fetch_add(&walked, 1, __ATOMIC_RELAXED);
  }
  return 0;
}

// After the one that moves the program's data to the heap, before the program's own.
__attribute__((constructor(102))) static void begin(void) {
  pthread_t thread;
  if (pthread_create(&thread, 0, walk, 0) != 0) abort();
  while (__atomic_load_n(&walked, __ATOMIC_RELAXED) < kBytes / kStep) sched_yield();
}
