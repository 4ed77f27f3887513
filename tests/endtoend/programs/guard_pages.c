// Guard pages: the program takes the rights of some of its pages away, has more memory than the cap, and gives the
// rights back. `untouched`: the pages were never stored to before.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { kRanges = 12, kBytes = 8 << 20, kPage = 4096, kGuards = 3 };

int main(int count, char** arguments) {
  const int is_untouched = count > 1 && strcmp(arguments[1], "untouched") == 0;
  char* ranges[kRanges];
  for (int k = 0; k < kRanges; ++k) {
    ranges[k] = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!is_untouched) memset(ranges[k], 100 + k, kGuards * kPage);
    const int refused = mprotect(ranges[k], kPage, PROT_NONE) + mprotect(ranges[k] + kPage, kPage, PROT_READ);
    if (refused != 0) perror("mprotect");
    memset(ranges[k] + kGuards * kPage, k + 1, kBytes - kGuards * kPage);
  }
  long wrong = 0;
  for (int round = 0; round < 2; ++round)
    for (int k = 0; k < kRanges; ++k)
      for (int i = kGuards * kPage; i < kBytes; i += 512) wrong += ranges[k][i] != k + 1;
  for (int k = 0; k < kRanges; ++k) {
    if (mprotect(ranges[k], 2 * kPage, PROT_READ | PROT_WRITE) != 0) perror("mprotect");
    for (int i = 0; i < kGuards * kPage; i += 512) wrong += ranges[k][i] != (is_untouched ? 0 : 100 + k);
    ranges[k][0] = ranges[k][kPage] = 1;
    munmap(ranges[k], kBytes);
    char* const again = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < kBytes; i += 512) wrong += again[i]++ != 0;
    mprotect(again, kPage, PROT_NONE);
    munmap(again, kBytes);
  }
  printf("wrong %ld\n", wrong);
  return 0;
}
