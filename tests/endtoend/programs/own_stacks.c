// Threads on stacks that the program has allocated itself, in memory that is evicted all the time: before they begin,
// while they run, and between two of them on the same stack. Every other one has a guard page, as pthread_create()
// would make it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pressure.h"

enum { kStack = 256 << 10, kObject = 1 << 20, kThreads = 24, kRounds = 40 };

// Goes deep into the stack.
static void* sum_of(void* given) {
  volatile unsigned char bytes[kStack / 2];
  long sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kStack / 2; i += 64) bytes[i] = (unsigned char)(i / 64 + round + (long)given);
    for (int i = 0; i < kStack / 2; i += 64) sum = sum * 31 + bytes[i];
  }
  return (void*)sum;
}

static pthread_t begin(char* stack, long number) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kStack);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, sum_of, (void*)number) != 0) perror("pthread_create");
  pthread_attr_destroy(&attributes);
  return thread;
}

int main(void) {
  char* const data = malloc(kPressure);
  press_once(data, 1);
  pthread_t presser;
  long all = 0;
  char* stack = aligned_alloc(kPage, kObject);
  for (long number = 0; number < kThreads; ++number) {
    if (number == kThreads / 2) presser = begin_pressure(data);
    for (int i = 0; i < kObject; ++i) stack[i] = (char)(number + i / kPage);
    if (number % 2 != 0 && mprotect(stack + kPage, kPage, PROT_NONE) != 0) perror("mprotect");
    if (number < kThreads / 2) press_once(data, 1);
    void* sum = NULL;
    pthread_join(begin(stack + kPage, number), &sum);
    all = all * 31 + (long)sum;
    if (mprotect(stack + kPage, kPage, PROT_READ | PROT_WRITE) != 0) perror("mprotect");
    for (int i = kObject - kPage; i < kObject; ++i) all += stack[i];
    if (number % 3 == 0) {
      free(stack);
      stack = aligned_alloc(kPage, kObject);
    }
  }
  end_pressure(presser);
  printf("%ld\n", all);
  return 0;
}
