// A thread takes the rights of pages away and gives them back, over and over, while another one has so much data that
// those pages are being written to the store all the time.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "pressure.h"

enum { kToggled = 6 << 20, kPieces = 16, kRounds = 6 };

static char* map(int bytes) {
  return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int protect(char* page, int rights) { return mprotect(page, kPage * kPieces, rights); }

int main(void) {
  char* const toggled = map(kToggled);
  const pthread_t presser = begin_pressure(map(kPressure));
  long wrong = 0, refused = 0;
  for (int round = 1; round <= kRounds; ++round) {
    for (int at = 0; at < kToggled; at += kPage * kPieces) {
      for (int i = 0; i < kPieces; ++i) {
        char* const page = toggled + at + i * kPage;
        wrong += page[round] != (char)(round - 1) || page[100] != (char)(round - 1);
        memset(page, round, 128);
      }
      refused += protect(toggled + at, PROT_NONE) != 0;
      if ((at / kPage / kPieces) % 2 == 0) refused += protect(toggled + at, PROT_READ | PROT_WRITE) != 0;
    }
    refused += mprotect(toggled, kToggled, PROT_READ | PROT_WRITE) != 0;
  }
  end_pressure(presser);
  for (int at = 0; at < kToggled; at += kPage)
    for (int i = 0; i < 128; ++i) wrong += toggled[at + i] != kRounds;
  printf("wrong %ld, refused %ld\n", wrong, refused);
  return 0;
}
