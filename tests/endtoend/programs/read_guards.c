// Guard pages with contents are read all the time, while another thread has so much data that they are being written
// to the store: each read is a SIGSEGV.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#include "pressure.h"

enum { kGuards = 1 << 20, kRounds = 60, kReads = 40 };

static sigjmp_buf back;

static char* map(int bytes) {
  return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void jump_back(int number) {
  (void)number;
  siglongjmp(back, 1);
}

static int can_read(const volatile char* page) {
  if (sigsetjmp(back, 1) != 0) return 0;
  (void)*page;
  return 1;
}

int main(void) {
  struct sigaction action = {.sa_handler = jump_back};
  sigaction(SIGSEGV, &action, NULL);
  char* guards = map(kGuards);
  const pthread_t presser = begin_pressure(map(kPressure));
  long was_read = 0, wrong = 0;
  for (int round = 1; round <= kRounds; ++round) {
    for (int i = 0; i < kGuards; i += kPage) wrong += guards[i] != (char)(round - 1), guards[i] = (char)round;
    if (mprotect(guards, kGuards, PROT_NONE) != 0) perror("mprotect");
    for (int k = 0; k < kReads; ++k)
      for (int i = k % 8 * kPage; i < kGuards; i += 8 * kPage) was_read += can_read(guards + i);
    if (mprotect(guards, kGuards, PROT_READ | PROT_WRITE) != 0) perror("mprotect");
  }
  end_pressure(presser);
  printf("read %ld, wrong %ld\n", was_read, wrong);
  return 0;
}
