/* An eviction policy of your own: which block leaves memory when another has to come.
 *
 * Build a shared library that defines `const struct spw_policy spw_policy_v1`, and name it: spillway run --policy
 * ./libmine.so. No program has to be changed or recompiled. examples/policy/fifo.c is a whole one.
 *
 * The cache is cut into partitions, and each gets an instance of the policy, which sees the partition's frames (places
 * for a block) by number, 0 <= frame < frame_count:
 *
 *     on_insert(f) -> on_touch(f)* -> next_candidate() = f -> on_remove(f)      evicted
 *                                                          -> on_keep(f)        used again meanwhile, or not wanted yet
 *
 * From next_candidate() = f on, f is on offer and must not be offered again before on_keep(f) or a new on_insert(f).
 * on_remove(f) also comes for a frame that was not on offer, when what it holds was freed. Candidates are asked for
 * ahead of need, some hundred at a time.
 *
 * Threads: an instance is called by one thread at a time, not always the same one;
 * different instances at once. No locks are needed, and functions must neither wait,
 * nor allocate, nor touch memory that Spillway manages: malloc() in `create` only.
 * Errors: an offer of a frame that holds no block, or is on offer, ends the program with a message. */
#ifndef SPILLWAY_POLICY_H
#define SPILLWAY_POLICY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPW_POLICY_VERSION 1

/* What next_candidate() may ask about a frame. */
enum spw_verdict {
  SPW_EVICTABLE = 0,  /* nobody holds it, and it was not used since the last look */
  SPW_REFERENCED = 1, /* nobody holds it, but it was used; the next look says no more of that use */
  SPW_BUSY = 2        /* it cannot leave now: empty, held, being read or written, or on offer */
};

struct spw_frames {
  void* context;
  enum spw_verdict (*look)(void* context, uint32_t frame);
};

#define SPW_NO_CANDIDATE UINT32_MAX

struct spw_policy {
  uint32_t version; /* SPW_POLICY_VERSION */
  const char* name;
  /* Whether on_touch() is wanted: it costs a few instructions at each end of a use. */
  int wants_touches;
  /* An instance for so many frames; NULL where there is no memory. */
  void* (*create)(uint32_t frame_count);
  void (*destroy)(void* instance);
  void (*on_insert)(void* instance, uint32_t frame, uint64_t block);
  void (*on_remove)(void* instance, uint32_t frame);
  void (*on_keep)(void* instance, uint32_t frame);
  /* A use ended. Comes late, in batches, and not always: it may have been of the block that the frame held before.
   * Never for a frame that is empty or on offer. May be NULL without wants_touches. */
  void (*on_touch)(void* instance, uint32_t frame);
  /* So many frames may be in use from now on. May be NULL. */
  void (*on_limit)(void* instance, uint32_t frame_count);
  /* The frame to evict next, or SPW_NO_CANDIDATE: after a bounded number of looks it gives up. It may offer a frame
   * that was REFERENCED, or that it did not look at; one that turns out to be busy comes back by on_keep(). */
  uint32_t (*next_candidate)(void* instance, const struct spw_frames* frames);
  /* Memory an instance takes, for the report: it comes on top of the cap. May be NULL. */
  uint64_t (*memory_bytes)(void* instance);
};

#ifdef __cplusplus
}
#endif

#endif
