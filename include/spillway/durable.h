/* Durable sections: structures in memory that survive a crash.
 *
 * A persistent region is a file that is mapped at the address which it names itself, so that pointers in it stay good.
 * What a program stores to it inside of a section is there after a crash as a whole or not at all. A section is what
 * lies between spw_durable_begin() and spw_durable_end(), or between the outermost pthread mutex (std::mutex, ...) that
 * a thread locks and the last one it unlocks. Programs compiled by spillway-clang++ -fspillway-durable need nothing
 * else; others announce their stores with spw_durable_will_store(), or make them with spw_durable_store().
 *
 * What is promised (spillway-durable(7)): when the end of a section returns, everything it
 * stored is durable, if all sections that it saw something of have ended; otherwise as soon as
 * they have. After a crash a region holds what some sections stored, in an order that the locks
 * allow: all that were durable, none in part, and none without those it saw something of.
 *
 * What will hurt you
 *   - A store that nobody announces is not undone by a recovery and may be lost: of code compiled otherwise, of system
 *     calls (read into a region).
 *   - Threads that store to the same bytes without a common lock are not ordered: a recovery may mix what they stored.
 *   - A pointer from a region to memory outside of it means nothing after a restart.
 *   - Mutexes are memory: one in a region has to be initialised again when the region was opened.
 *   - A section is atomic in each region. One that stores to two
 *     regions may be whole in one of them and undone in the other.
 *   - pthread_cond_wait() releases its mutex: outside of other locks
 *     a section ends there, and another begins when it is back.
 *   - A signal handler that stores to a region, between an announcement
 *     and its store, may have that line written back too early.
 *   - A thread that ends inside of a section leaves it unfinished for good; so do sections that depend on it.
 * Errors: 0 or a negative errno; spw_error_message() says more. Threads: every function may be called from any
 * thread. */
#ifndef SPILLWAY_DURABLE_H
#define SPILLWAY_DURABLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open region. */
typedef struct spw_durable spw_durable;

/* How lines are written back (adaptive software caching, sections II and III; the paper's names in brackets). */
struct spw_durable_options {
  size_t size; /* of this structure: sizeof(struct spw_durable_options) */
  /* "auto": pmem where the file is on persistent memory or in tmpfs, else block. "pmem": -ENOTSUP elsewhere. "block":
   * through the page-aligned writes of an ordinary file. NULL: auto. */
  const char* domain;
  /* "adaptive" (SC), "fixed:LINES" (SC with an offline profile), "table" (AT), "lazy" (LA), "eager" (ER), "none" (BEST:
   * not durable, to measure against). NULL: SPILLWAY_DURABLE, or adaptive. */
  const char* technique;
  uint64_t burst_stores;   /* watched by each thread before "adaptive" picks its size; 0: 64 Mi */
  uint64_t capacity_bytes; /* of a new region: it never grows beyond; 0: 64 GiB. Addresses, not space */
  uint32_t threads;        /* of a new region: at most so many use it at a time; 0: 64 */
  uint32_t flags;          /* SPW_DURABLE_... */
};
/* -ENOENT where there is no file, instead of a new region. */
#define SPW_DURABLE_MUST_EXIST 1u
/* Watch all stores, for spw_durable_profiled_lines(). */
#define SPW_DURABLE_PROFILE 2u

/* Opens the region in the file `path`, or makes one, and undoes what a crash left unfinished. `options` may be NULL.
 * -EWOULDBLOCK: another process has it, or this one. -EEXIST: something else is at its address. -EILSEQ: it is no
 * region, of another version, or damaged; nothing was changed. */
int spw_durable_open(const char* path, const struct spw_durable_options* options, spw_durable** region);
/* -EBUSY: a section is open. No other thread uses the region any more. */
int spw_durable_close(spw_durable* region);

/* An object of the region, aligned to 16 bytes; contents undefined. It is allocated, or freed, as part of the section,
 * or as one of its own outside of any. NULL: spw_error_message() says why. -EINVAL: no object that is allocated begins
 * there. -EILSEQ: what says whether it is allocated is damaged. */
void* spw_durable_alloc(spw_durable* region, size_t bytes);
int spw_durable_free(void* object);
/* Names an object of the region, so that it is found when the region
 * is opened again; NULL removes the name. At most 47 bytes, 256 names. */
int spw_durable_set_root(spw_durable* region, const char* name, void* object);
/* NULL: there is none of that name. */
void* spw_durable_root(spw_durable* region, const char* name);

/* A section of this thread begins; they nest, with each other and with locks. */
int spw_durable_begin(void);
/* -EIO and the like: the section is not durable, and the region takes no more stores. */
int spw_durable_end(void);
/* Puts back what the section has stored; it goes on until its end.
 * -EBUSY: it has released a lock, so others may have seen it. */
int spw_durable_undo(void);

/* `bytes` bytes at `at`, in a region, are about to be stored to.
 * -ENOSPC: the region has no room for what stands there; do not store. */
int spw_durable_will_store(void* at, size_t bytes);
/* memcpy() with it. */
int spw_durable_store(void* to, const void* from, size_t bytes);
/* All that this thread has stored is durable, also outside of sections: waits for the sections of others that its own
 * have seen something of. -EBUSY inside of a section; -ETIMEDOUT: one of those has not ended for 10 s. */
int spw_durable_sync(void);

/* A lock of the program's own was acquired, or is about to be released: sections go by it as by a mutex. */
int spw_durable_acquired(const void* lock);
int spw_durable_releasing(const void* lock);

struct spw_durable_statistics {
  uint64_t stores;        /* announced */
  uint64_t lines_flushed; /* written back for them; lines_flushed / stores is the paper's flush ratio */
  uint64_t sections;      /* ended */
  uint64_t records;       /* of the undo log */
  uint64_t log_bytes;
  uint64_t lines;      /* the largest software cache of any thread, in lines */
  uint64_t line_bytes; /* 64, or 4096 for block */
  uint64_t undone;     /* sections that opening the region has undone */
};
int spw_durable_get_statistics(spw_durable* region, struct spw_durable_statistics* statistics);
/* With SPW_DURABLE_PROFILE: the best size for "fixed:LINES"; 0 without. While no thread stores to the region. */
uint32_t spw_durable_profiled_lines(spw_durable* region);

#ifdef __cplusplus
}
#endif

#endif
