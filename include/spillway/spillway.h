/* Spillway's public C API: for programs that want to say more than a load or a store says. Nothing here is needed:
 * a program recompiled with spillway-clang runs without it. Link with -lspillway (the compiler driver does).
 *
 * What will hurt you
 *   - A pointer from spw_pin() is good until its spw_unpin(), in the thread that pinned it, and only for the bytes returned:
 *     the neighbour of a block in address space is not its neighbour in memory.
 *   - A thread holds at most SPW_PINS_PER_THREAD pins, all threads together 16. Holding them for long takes memory from everybody.
 *   - In a forked child no call but spw_version() and spw_is_managed() works.
 * Errors: functions that can fail return a negative errno; bad arguments are -EINVAL.
 * Threads: every function may be called from any thread at any time. */
#ifndef SPILLWAY_SPILLWAY_H
#define SPILLWAY_SPILLWAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPW_PINS_PER_THREAD 4

/* "0.1.0". */
const char* spw_version(void);

/* 1 when `address` lies in managed space, else 0. */
int spw_is_managed(const void* address);

enum spw_access {
  SPW_READ = 0,
  SPW_WRITE = 1,
  /* Every one of the `bytes` asked for will be overwritten before it is read: whole blocks are not read first. */
  SPW_OVERWRITE = 2
};

/* A piece of managed memory held in place. */
struct spw_pinned {
  void* data;   /* where the bytes are now */
  size_t bytes; /* how many of those asked for: up to the end of the block */
  uint64_t reserved;
};

/* Holds the block at `address` (managed; -EINVAL otherwise) in memory and says where it is. The first `bytes` of it, or as
 * many as lie in its block. -EMFILE when too many are held. (TriCache, section 3.4: block-wise use.) */
int spw_pin(const void* address, size_t bytes, enum spw_access access, struct spw_pinned* pin);
int spw_unpin(const struct spw_pinned* pin);

/* Asks for [address, address + bytes) to be brought in, without waiting. Does nothing for unmanaged memory. */
int spw_prefetch(const void* address, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
