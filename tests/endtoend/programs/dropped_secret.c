// Memory that no core dump is to have, of which the program has taken all rights away, is dropped (MADV_DONTNEED), and
// reads as zeros when the rights come back.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { kSecret = 256 << 10, kAll = 1 << 20, kPressure = 48 << 20 };

static char* map(int bytes) {
  return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(void) {
  char* const pressure = map(kPressure);
  memset(pressure, 1, kPressure);
  char* const memory = map(kAll);
  memset(memory, 7, kAll);
  if (madvise(memory, kSecret, MADV_DONTDUMP) != 0) perror("MADV_DONTDUMP");
  memset(pressure, 2, kPressure);
  if (mprotect(memory, kSecret, PROT_NONE) != 0) perror("mprotect");
  if (madvise(memory, kSecret, MADV_DONTNEED) != 0) perror("MADV_DONTNEED");
  if (mprotect(memory, kSecret, PROT_READ | PROT_WRITE) != 0) perror("mprotect");
  long wrong = 0;
  for (int i = 0; i < kAll; ++i) wrong += memory[i] != (i < kSecret ? 0 : 7);
  printf("wrong %ld\n", wrong);
  return 0;
}
