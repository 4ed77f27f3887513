// A program prints a line for each thing it did; what it prints must not depend on how it was compiled.
#ifndef SPW_PROGRAMS_CHECK_H
#define SPW_PROGRAMS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint64_t mix(uint64_t h, uint64_t x) {
  h ^= x;
  h *= 0x9E3779B97F4A7C15u;
  return h ^ (h >> 29);
}
#define HASH_BYTES(h, p, n)                                                        \
  do {                                                                             \
    for (size_t i_ = 0; i_ < (n); ++i_) (h) = mix((h), ((unsigned char*)(p))[i_]); \
  } while (0)
#define REPORT(name, h) printf("%-28s %016llx\n", name, (unsigned long long)(h))

static uint64_t random_state = 88172645463325252u;
static inline uint64_t random_u64(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}
#endif
