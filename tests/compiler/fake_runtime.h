// A runtime for tests of the pass alone, as hostile as abi/abi.h allows: a direct SATC of two entries a
// thread, so that it evicts all the time; a block (of 4 KiB) that loses its last pin moves to another frame
// and the old one is filled with 0xDB, so that a raw address used after SPW_STABLE_TRANSLATIONS further
// translations reads or writes garbage; slow calls that clobber every register they may. Frames are one
// memfd; foreign code that touches a managed address gets the frame mapped there by a SIGSEGV handler until
// the block is evicted. The switch between versions is turned over now and then, in both directions.
//
// Threads: one global lock. Limits: kSpaceBytes of managed space, never reused.
#ifndef SPW_TESTS_COMPILER_FAKE_RUNTIME_H
#define SPW_TESTS_COMPILER_FAKE_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool fake_is_managed(const void* p);

// Any memory, managed or plain, of any length.
void fake_read(void* plain, const void* from, size_t bytes);
void fake_write(void* to, const void* plain, size_t bytes);

void* fake_allocate(size_t bytes, size_t alignment);
size_t fake_size(const void* p);

#include "abi/abi.h"

static inline bool fake_is_managed(const void* p) {
  return (uintptr_t)p >> SPW_MANAGED_SHIFT == SPW_MANAGED_TAG;
}

#endif
