/* Spillway's public C API: for programs that want to say more than a load or a store says. Nothing here is needed:
 * a program recompiled with spillway-clang runs without it. Link with -lspillway (the compiler driver does).
 *
 * Two engines (docs, spillway-regions(7)): in the mapped one a managed address is memory that any code can use. In the
 * translated one it is a name, which recompiled code and libc's functions understand and other code pays a fault for;
 * spw_pin_range() and spw_set_memory_limit() are -ENOTSUP there, and a region's block size has no effect.
 *
 * What will hurt you
 *   - A pointer from spw_pin() is good until its spw_unpin(), in the thread that pinned it, and only for the bytes
 *     returned: the neighbour of a block in address space is not its neighbour in memory.
 *   - A thread holds at most SPW_PINS_PER_THREAD pins, all threads
 *     together 16. Holding them for long takes memory from everybody.
 *   - A region that is gone (spw_unmap) is gone for every thread: nobody may use it meanwhile.
 *   - What is stored to a shared region reaches its store when it is evicted, flushed, unmapped, or the program ends by
 *     exit(); a program that is killed loses what had not.
 *   - In a forked child no call but spw_version() and spw_is_managed() works.
 * Errors: functions that can fail return 0 or a negative errno; bad
 * arguments are -EINVAL; spw_error_message() says more.
 * Threads: every function may be called from any thread at any time. */
#ifndef SPILLWAY_SPILLWAY_H
#define SPILLWAY_SPILLWAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPW_PINS_PER_THREAD 4

/* Semantic versions: within one MAJOR what compiles and links goes on to do so (within 0, within one MINOR). */
#define SPW_VERSION_MAJOR 0
#define SPW_VERSION_MINOR 2
#define SPW_VERSION_PATCH 0

/* The library's, which may be newer than the header that the program was compiled with: "0.1.0". */
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

/* Holds the block at `address` (managed; -EINVAL otherwise) in memory and says where it is. The first `bytes` of it, or
 * as many as lie in its block. -EMFILE when too many are held. (TriCache, section 3.4: block-wise use.) */
int spw_pin(const void* address, size_t bytes, enum spw_access access, struct spw_pinned* pin);
int spw_unpin(const struct spw_pinned* pin);

/* One line about the last call that failed in this thread; "" when none has. Good until the thread's next call. */
const char* spw_error_message(void);

/* ---- Options ---- */

/* Sets an option of `spillway run` ("memory", "4G"; dashes or
 * underscores) for this process, over what the environment says.
 * Before managed memory is first used: -EBUSY afterwards. An allocation of at least
 * `threshold` bytes is a first use, so set options at the start of main(). -EINVAL for
 * an unknown name, a value it does not take, or one that does not go with the others. */
int spw_set_option(const char* name, const char* value);

/* The cap in bytes, and a new one, at most that of the start; when it returns 0, what is above it has been evicted, and
 * written before where it had to be. -EINVAL when it is too small or too large, -EBUSY when pinned ranges would be more
 * than half of it; -ETIMEDOUT when the new cap holds from now on, but part of what is above it could not be evicted in
 * 30 s (a store that is full or very slow, blocks that are held): it goes as soon as it can. Mapped engine only. */
uint64_t spw_memory_limit(void);
int spw_set_memory_limit(uint64_t bytes);

/* ---- Regions (UMap, section 3) ---- */

enum spw_map_flags {
  SPW_MAP_SHARED = 1,    /* what is stored goes to the store */
  SPW_MAP_PRIVATE = 2,   /* what is stored is this process's own, and is spilled like any other memory */
  SPW_MAP_READ_ONLY = 4, /* a store to it ends in SIGSEGV */
  SPW_MAP_CREATE = 8 /* file:PATH only: made, and lengthened (sparsely) up to offset + length, if need be */
};

/* The unit of a region's fills, in bytes: a power of two. */
#define SPW_BLOCK_BYTES_MIN 4096
#define SPW_BLOCK_BYTES_MAX (8u << 20)

/* Maps bytes [offset, offset + length) of `store`, and puts where they are into *address.
 *   store        its URI: file:PATH, sparse:DIR?size=..&segment=.., striped:URI,URI, nbd://HOST/EXPORT,
 *                rbd:POOL/IMAGE, memory:SIZE (spillway(1));
 *                NULL: anonymous memory, all zeros, spilled where everything is
 *   offset       a multiple of 4096 (and of the store's alignment); of anonymous memory 0
 *   length       0: up to the store's end. A range that ends behind it is -EINVAL
 *   flags        exactly one of the first three, and SPW_MAP_CREATE where it applies; of anonymous memory 0
 *   block_bytes  a hint, 0 for none: a miss brings in the whole aligned piece of this size, the block in demand first.
 *                What is dirty and what is evicted is still told by the block of the option `block` (UMap, section 6.2)
 * -EINVAL, -ENOMEM (no address space), -ENFILE (65535 regions), or what opening the store said. */
int spw_map(const char* store, uint64_t offset, size_t length, unsigned flags, size_t block_bytes,
            void** address);

/* A store of your own. Callbacks return the bytes moved, which may be fewer than asked (0 from
 * read: the end, behind which there are zeros), or a negative errno. They are called by many
 * threads at a time, for different bytes, and must not touch managed memory but `buffer`, nor
 * call this API, nor throw: they run inside the runtime, where malloc() is libc's own. */
struct spw_store {
  size_t size; /* sizeof(struct spw_store) */
  void* context;
  uint64_t bytes; /* of the store; asked for once, when it is mapped */
  int64_t (*read)(void* context, void* buffer, size_t bytes, uint64_t offset);
  int64_t (*write)(void* context, const void* buffer, size_t bytes,
                   uint64_t offset); /* NULL: it is not writable */
  int (*sync)(void* context);        /* makes all writes durable, 0 or a negative errno; NULL: they are */
};

/* As spw_map(), of a store of your own. *store is copied; its context lives until spw_unmap() has returned. */
int spw_map_store(const struct spw_store* store, uint64_t offset, size_t length, unsigned flags,
                  size_t block_bytes, void** address);

/* Writes and syncs a shared region, unpins what is pinned of it, and gives its addresses back. `address` is what
 * spw_map() said (-EINVAL otherwise). When the write fails, its error is returned and the region stays, so nothing is
 * lost: try again, or drop it with spw_unmap_unsaved(). */
int spw_unmap(void* address);
int spw_unmap_unsaved(void* address);

/* ---- Ranges. Any managed memory, allocated or mapped; -EINVAL when a byte is not. Blocks at the edges count whole. ---- */

/* Writes what is dirty to its stores and keeps it in memory; spw_sync() makes it durable, too. */
int spw_flush(const void* address, size_t bytes);
int spw_sync(const void* address, size_t bytes);
/* spw_flush() of all shared regions and shared file mappings. The first error is returned, all are tried. */
int spw_flush_all(void);

struct spw_range {
  const void* address;
  size_t bytes;
};

/* Asks for [address, address + bytes) to be brought in, without waiting; may do less than asked, and at most an eighth
 * of the memory at a time. Does nothing for what is not managed. */
int spw_prefetch(const void* address, size_t bytes);
/* The same for ranges that have nothing to do with one another (UMap's irregular prefetch). */
int spw_prefetch_ranges(const struct spw_range* ranges, size_t count);

/* Brings the range in and keeps it in memory until spw_unpin_range() with the same bounds (hybrid caching: pin what you
 * know is hot, the rest is replaced). All pinned ranges together may take half of each partition of the memory, at most
 * half of it in all; -ENOMEM beyond, and nothing is pinned (spw_pin_range(3)). Mapped engine only (-ENOTSUP). */
int spw_pin_range(const void* address, size_t bytes);
int spw_unpin_range(const void* address, size_t bytes);

enum spw_advice {
  SPW_NORMAL = 0,     /* the region's own block size again */
  SPW_SEQUENTIAL = 1, /* misses bring in 1 MiB */
  SPW_RANDOM = 2,     /* misses bring in their block alone */
  SPW_WILLNEED = 3,   /* spw_prefetch() */
  /* Anonymous memory: what whole blocks hold is dropped without a write, they read as zeros; nobody may use them
   * meanwhile. Of a region on a store: dirty blocks are written now, so that their eviction will cost nothing. */
  SPW_DONTNEED = 4
};

/* The first three work in steps of 2 MiB of address space, rounded outwards. */
int spw_advise(const void* address, size_t bytes, enum spw_advice advice);

/* ---- Batches ---- */

#define SPW_REQUEST_BYTES_MAX (1u << 20)

/* A piece of managed memory to be copied from or to, as soon as it is there. */
struct spw_request {
  void* address; /* managed: [address, address + bytes) */
  void* buffer;  /* the program's own: SPW_READ copies into it, SPW_WRITE and SPW_OVERWRITE out of it */
  size_t bytes;  /* 1 to SPW_REQUEST_BYTES_MAX */
  enum spw_access access;
  /* Called once, in the thread that submits or waits. The request is the caller's again, and may be submitted once
   * more: from here, too, where submitting does not call any function, but leaves that to whoever submits or waits
   * outside. It returns: no exception or longjmp() out of it, and no spw_batch_destroy() of its batch. */
  void (*done)(struct spw_request* request);
  void* context; /* the caller's */
};

/* Many reads in flight from one thread: requests that find their blocks in memory are served at once, the blocks of the
 * others are read meanwhile. (SA-cache, section 3: its asynchronous interface and Figure 2.) `in_flight_max`: 1 to
 * 65536. NULL, with a message, when it is not, or there is no memory. A batch is one thread's at a time. On a machine
 * of several memory nodes (option `nodes`), blocks of other nodes are asked for by message: threads of their own node
 * copy the bytes, and a request for one of them is done when its answer is received, there or not. */
struct spw_batch* spw_batch_create(unsigned in_flight_max);

/* Takes all `count` requests, in the array's order; they have to stay until they are done. Where `in_flight_max` are
 * under way it waits for the oldest one. -EINVAL when one of them is wrong, and then none is taken. Two requests for
 * the same bytes are served in any order unless the first is done before the second is submitted. */
int spw_batch_submit(struct spw_batch* batch, struct spw_request* requests, size_t count);

/* Waits until `at_least` more requests are done, or none is left. How
 * many were done by this call; 0 when called by a `done`. */
size_t spw_batch_wait(struct spw_batch* batch, size_t at_least);
/* Submitted and not done yet. */
size_t spw_batch_in_flight(const struct spw_batch* batch);

/* Waits for what is under way. NULL is all right. */
void spw_batch_destroy(struct spw_batch* batch);

/* ---- Files ---- */

/* Buffered input and output in this process: what is read again, or written, costs no system call while it is in
 * memory, and what is dirty is written by many requests at a time. A descriptor from spw_open() is one of the kernel's,
 * too (fstat(2), fcntl(2) locks), but its data goes through these functions only, and spw_close() ends it. They behave
 * as the functions of POSIX that they are named after, and return what those do, or a negative errno. What is written
 * reaches the file when it is evicted, with the last spw_close() of the file (-EIO, -ENOSPC: not all of it), at exit,
 * or with spw_fsync(), after which it is durable. A process that is killed loses what had not. Other processes see what
 * has reached the file; what they write meanwhile is not seen. Regular files only, up to 8 TiB, and such as may be read
 * and written even where they are only written. "striped:PATH,PATH,..." is one file in chunks on several files or
 * devices, whose disks then work at the same time. (ScaleCache; spw_open(3).) */
struct iovec;
int spw_open(const char* path, int flags, unsigned mode);
int spw_close(int fd);
/* Bytes moved. A block that cannot be read is -EIO; memory that has no room because what is dirty cannot be written is
 * -ENOSPC or what the writes said, after 30 s. */
int64_t spw_read(int fd, void* buffer, size_t bytes);
int64_t spw_write(int fd, const void* buffer, size_t bytes);
int64_t spw_pread(int fd, void* buffer, size_t bytes, int64_t offset);
int64_t spw_pwrite(int fd, const void* buffer, size_t bytes, int64_t offset);
int64_t spw_readv(int fd, const struct iovec* pieces, int count);
int64_t spw_writev(int fd, const struct iovec* pieces, int count);
/* SEEK_SET, SEEK_CUR and SEEK_END. */
int64_t spw_lseek(int fd, int64_t offset, int whence);
int spw_ftruncate(int fd, int64_t bytes);
/* Data, and the size; spw_fsync() all other metadata, too. An error stays one until what failed has been written. */
int spw_fdatasync(int fd);
int spw_fsync(int fd);
/* Bytes [offset, offset + length) of the file, which is open for reading and writing, as memory: what is stored there
 * spw_read() sees at once, and the other way round. `offset`: a multiple of 4096; length 0: up to the file's end. Until
 * spw_unmap(*address), which syncs, the file stays open, cannot get shorter than that (-EBUSY), nor outgrow its
 * addresses (-ENOSPC): four times the size that it was opened with, and 16 MiB. */
int spw_map_fd(int fd, uint64_t offset, size_t length, void** address);

/* ---- Statistics ---- */

/* Counts since the start, of all threads. New members come at the end. */
struct spw_statistics {
  size_t size; /* in: sizeof(struct spw_statistics); out: how many bytes of it were written */
  uint64_t memory_limit_bytes;
  uint64_t block_bytes;
  uint64_t managed_bytes; /* mapped or allocated in managed space now */
  uint64_t cached_bytes;  /* of them in memory now; all that may be, while all fit (mapped engine) */
  uint64_t pinned_bytes;  /* by spw_pin_range(); twice what is pinned twice */
  uint64_t misses;        /* blocks brought in because somebody waited for them */
  uint64_t faults;        /* page faults on managed memory (mapped engine) */
  uint64_t fills;         /* blocks read from stores: on demand, ... */
  uint64_t ahead_fills;   /* ... and ahead of need, or along with these */
  uint64_t zero_fills;    /* blocks that had never been written */
  uint64_t evictions;
  uint64_t writebacks; /* blocks written to stores */
  uint64_t read_bytes;
  uint64_t written_bytes;
  uint64_t waited_ns; /* for blocks to be read, all threads together */
};
int spw_get_statistics(struct spw_statistics* statistics);

#ifdef __cplusplus
}
#endif

#endif
