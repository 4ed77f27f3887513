// See fake_reach.c.
#ifndef SPW_TESTS_COMPILER_FAKE_REACH_H
#define SPW_TESTS_COMPILER_FAKE_REACH_H

#include <stdint.h>

/* As __spw_reach_load_v1; `is_loose`: whether to give a raw address, where there can be one. */
void* fake_reach(void* address, uint64_t bytes_and_site, int is_loose);
/* Where the program's heap begins. */
uintptr_t fake_heap(void);

#endif
