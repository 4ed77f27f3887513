/* What instrumented code and the runtime agree on. The pass writes code against this file, the runtime implements it;
 * any change here changes SPW_ABI_VERSION, and with it the version symbol, so that a pass and a runtime of different
 * versions do not link.
 *
 * Addresses. Managed space is the aligned range [SPW_MANAGED_BASE, SPW_MANAGED_BASE + 2^44). An address is managed
 * exactly when (address >> SPW_MANAGED_SHIFT) == SPW_MANAGED_TAG. The runtime reserves the range without access, so a
 * managed address that is used untranslated faults at its own address.
 *
 * Direct SATC. A thread's table of 2^k entries, indexed by granule: 4 KiB pieces of managed space, whatever the block
 * size, so that every shift is a constant. A block larger than a granule has one entry for each granule touched.
 *
 *     granule(p) = (p >> SPW_GRANULE_SHIFT) & 0xffffffff           32 bits name a granule within managed space
 *     entry(p)   = thread.direct + (granule(p) << 4 & thread.direct_mask_bytes)
 *     load hit   : entry.read_tag  == granule(last byte of the access)     =>  raw = p + entry.delta
 *     store hit  : entry.write_tag == granule(last byte of the access)     =>  raw = p + entry.delta
 *
 * An access that crosses a granule looks up the entry of its first byte and compares the granule of its last: it always
 * misses and is handled out of line. Granule 0 is never handed out, so an all-zero entry matches nothing a program
 * can own. A thread that never met the runtime has a one-entry table of zeros.
 *
 * Validity. A translation stays good for the thread that made it until that thread has made SPW_STABLE_TRANSLATIONS
 * further translations or called a function that may translate. Pass and runtime both count on it: the pass may keep a
 * raw address across fewer translations than that; the runtime keeps a block pinned for that many evictions from the
 * private SATC after it left it. A translation that the direct SATC answers evicts nothing and ends no validity.
 *
 * Versions. While everything fits in memory, blocks that are in use stand at their own
 * addresses as well, and an address needs no translation. So a function may have two
 * versions of its body, plain and instrumented, and tests a byte at a fixed address:
 *
 *     *(int8_t*)SPW_VERSION_SWITCH   0: the plain version may run     != 0: the instrumented one should
 *
 * The byte can be read before the program's first instruction. Plain code reads it where a
 * function begins and at headers of loops, and goes over to the same place of the instrumented
 * version when it is set; a call that has gone over stays there until it returns. The runtime may
 * set it at any time, and plain code may go on until it next looks: what it touches then is served
 * as foreign code is, one fault a block. The mapped engine's code has the same switch (hints.h).
 */
#ifndef SPW_ABI_ABI_H
#define SPW_ABI_ABI_H

#include <stddef.h>
#include <stdint.h>

#define SPW_ABI_VERSION 3
/* Every instrumented module holds a reference to this symbol, and the runtime defines the one of its own version. */
#define SPW_ABI_VERSION_SYMBOL __spw_abi_v3

#define SPW_MANAGED_SHIFT 44
#define SPW_MANAGED_TAG 2
#define SPW_MANAGED_BASE ((uintptr_t)SPW_MANAGED_TAG << SPW_MANAGED_SHIFT)
#define SPW_MANAGED_BYTES ((uintptr_t)1 << SPW_MANAGED_SHIFT)
#define SPW_GRANULE_SHIFT 12
#define SPW_GRANULE_BYTES ((uintptr_t)1 << SPW_GRANULE_SHIFT)
#define SPW_STABLE_TRANSLATIONS 8
#define SPW_VERSION_SWITCH ((uintptr_t)0x7fff8000)
/* The widest single access the pass may emit (a 64-byte vector), and the size of the buffer for one that crosses. */
#define SPW_ACCESS_BYTES_MAX 64

#ifdef __cplusplus
extern "C" {
#endif

struct __spw_satc_entry {
  uint32_t read_tag;  /* granule, or 0 */
  uint32_t write_tag; /* granule when the block may be stored to, else 0 */
  uint64_t delta;     /* raw address - managed address, modulo 2^64 */
};

/* Thread-local, initial-exec TLS, defined by the runtime. Field order is part of the ABI. */
struct __spw_thread {
  struct __spw_satc_entry* direct;
  uint64_t direct_mask_bytes; /* (number of entries - 1) << 4 */
  uint64_t direct_hits;       /* counted only by code compiled with -fspillway-count */
};

#ifdef __cplusplus
}
#endif

/* Out-of-line entry points. They use LLVM's preserve_most calling convention (every general register
 * but r11 is kept; vector registers are not), so that the hot path around them spills nothing.
 *
 *   void*    __spw_load_v1(const void* p, uint64_t size)
 *       raw address to read `size` bytes at managed `p` from: in the block's frame or, when the access crosses a
 *       block, a thread's buffer that holds a copy, good until the thread's next call. size <= SPW_ACCESS_BYTES_MAX.
 *   void*    __spw_store_v1(void* p, uint64_t size)
 *       raw address to write `size` bytes (or to read and write, for
 *           an atomic) at; the access must not cross a granule.
 *   void*    __spw_span_v1(void* p, uint64_t size, uint64_t is_store)
 *       `size` <= SPW_GRANULE_BYTES bytes at managed `p` that cross a
 *           granule: their raw address, if they lie side by side in
 *       raw memory too; else null. is_store: 0 or 1.
 *   void     __spw_store_across_v1(void* p, const void* bytes, uint64_t size)
 *       stores `size` bytes to managed `p`, across blocks if need be. For accesses that may cross.
 *   void     __spw_memcpy_v1 / memmove / memset: the memory intrinsics; either pointer may be managed or not.
 */

#endif
