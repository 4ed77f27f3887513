/* A running checksum of what a program computed, so that native and recompiled runs can be compared by their output. */
#ifndef PRINT_H
#define PRINT_H

#include <stdint.h>
#include <stdio.h>

static inline uint64_t mix(uint64_t sum, uint64_t value) {
  sum ^= value + 0x9E3779B97F4A7C15u + (sum << 6) + (sum >> 2);
  return sum * 0xBF58476D1CE4E5B9u;
}

static inline uint64_t next_random(uint64_t* state) {
  uint64_t x = *state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return *state = x;
}

static inline void print_sum(const char* name, uint64_t sum) {
  printf("%s %016llx\n", name, (unsigned long long)sum);
}

#endif
