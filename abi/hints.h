/* What code compiled for the mapped engine and the runtime agree on: residency hints. The pass writes code against this
 * file, the runtime implements it. Any change here changes the version in SPW_HINTS_VERSION_SYMBOL, so that a pass and
 * a runtime of different versions do not link.
 *
 * In the mapped engine a pointer to managed memory (abi.h's range) is an ordinary pointer: an access to a block that is
 * not resident faults and the runtime brings the block in, so any code works. A hint only lets recompiled code ask
 * before the access, at the price of one byte load, and call instead of fault.
 *
 * Hint table. One signed byte for each piece of 2^SPW_HINT_SHIFT bytes of address space, whatever the block size, at a
 * fixed address that fits a 32-bit displacement, for ANY address below 2^SPW_HINT_ADDRESS_BITS, managed or not:
 *
 *     hint(p) = *(int8_t*)((p >> SPW_HINT_SHIFT) + SPW_HINT_OFFSET)
 *
 *       0   go on: resident, referenced and dirty; and every unmanaged address (the runtime maps the whole table before
 *           the program's first instruction, without reserving memory: unmanaged parts read as the kernel's zero page)
 *     > 0   SPW_HINT_CLEAN or another: resident and referenced, clean: a load goes on, a store calls
 *     < 0   not resident, or not referenced since the eviction policy last looked: a load and a store call
 *
 *     load test :  hint(p) <  0  =>  __spw_hint_load_v1(p)
 *     store test:  hint(p) != 0  =>  __spw_hint_store_v1(p)          (an atomic read-modify-write is a store)
 *
 * The plain access follows in every case. A stale or missing hint is never wrong, only slow: behind it stands the MMU.
 * So the pass may leave out, move, merge and repeat hints, also across calls, stores and synchronisation; the bytes are
 * read without ordering, and may be written so. Two limits: the pass tests no address that the program would not touch
 * anyway or that lies more than a piece from one that it would (an arbitrary 64-bit value has no hint byte); and the
 * runtime must take any address below 2^SPW_HINT_ADDRESS_BITS, also unmanaged, freed or null.
 *
 * Switch. The hint byte of address 0 is none: it is the switch between
 * versions of functions (abi.h). Here the plain version has no hints:
 *
 *     *(int8_t*)SPW_HINT_SWITCH   0: everything fits in memory so far     != 0: blocks are being evicted, hints matter
 *
 * The runtime may change it in both directions, and code goes over in both: back at a function's outermost loops,
 * or when it is called again. (A null pointer's test therefore may call, with p < 4096.)
 */
#ifndef SPW_ABI_HINTS_H
#define SPW_ABI_HINTS_H

#include <stddef.h>
#include <stdint.h>

#include "abi/abi.h"

/* Every module compiled for the mapped engine holds a reference to this symbol (a char); the runtime defines it. */
#define SPW_HINTS_VERSION_SYMBOL __spw_hints_v2

#define SPW_HINT_SHIFT 12
#define SPW_HINT_PIECE_BYTES ((uintptr_t)1 << SPW_HINT_SHIFT)
#define SPW_HINT_ADDRESS_BITS 47
#define SPW_HINT_OFFSET ((uintptr_t)0x7fff8000)
#define SPW_HINT_TABLE_BYTES ((uintptr_t)1 << (SPW_HINT_ADDRESS_BITS - SPW_HINT_SHIFT))
#define SPW_HINT_SWITCH SPW_VERSION_SWITCH /* = SPW_HINT_OFFSET */
#define SPW_HINT_CLEAN 1
/* Sites of a segment, numbered from 0. */
#define SPW_REACHES_MAX 8
#define SPW_SITE_SHIFT 16

/* Reaching. A block that is not at its own address may be *loose*: its contents are in memory, at a raw address that
 * only the runtime knows. An access whose hint says so asks for it:
 *
 *     load  :  hint(p) <  0  =>  raw = __spw_reach_load_v1(p, bytes | site << SPW_SITE_SHIFT)     else raw = p
 *     store :  hint(p) != 0  =>  raw = __spw_reach_store_v1(p, bytes | site << SPW_SITE_SHIFT)    else raw = p
 *
 * and goes on with raw, which is p itself where the block is at its own address, or [p, p + bytes) crosses a block. A
 * segment is a piece of code without calls and loops, in which sites are numbered upwards; raw is good until the thread
 * asks from a site of the same or a lower number, and that is when it is of no more use.
 * Before a call that accesses p itself (a copy) what is asked for is SPW_FOR_A_CALL: the block is at its own address
 * then, and no raw address of the thread's is good any more.
 */
#define SPW_FOR_A_CALL 0

/* Out-of-line entry points. Those above and the first two below use LLVM's preserve_most calling convention (every
 * general register but r11 is kept; vector registers are not), so that the hot path around them spills little; the
 * others the platform's C convention. All take any address and never fail: what cannot be done is left to the fault.
 * Those below return nothing.
 *
 *   void __spw_hint_load_v1(const void* p)
 *       `p` is about to be loaded from: bring its block in and mark it referenced.
 *   void __spw_hint_store_v1(const void* p)
 *       `p` is about to be stored to: the same, and make the block writable.
 *   void __spw_hint_range_v1(const void* p, uint64_t bytes, uint64_t is_store)
 *       [p, p + bytes) is about to be loaded or stored (is_store: 0
 *           or 1) as a whole, by a memory intrinsic. Called only
 *       for SPW_HINT_RANGE_BYTES_MIN bytes and more; shorter ranges have their first and last byte tested.
 *   void __spw_hint_stream_v1(const void* p, uint64_t bytes, uint64_t is_store)
 *       A loop is about to walk [p, p + bytes) once, in ascending
 *           order for the most part: read ahead. Says nothing about
 *       when, and the loop may end early. Called only for SPW_HINT_STREAM_BYTES_MIN bytes and more.
 *
 * Both ranges may be wrong in what they claim (a loop that leaves early): a runtime clips them to what it manages.
 */
#define SPW_HINT_RANGE_BYTES_MIN ((uintptr_t)4096)
#define SPW_HINT_STREAM_BYTES_MIN ((uintptr_t)256 << 10)

#endif
