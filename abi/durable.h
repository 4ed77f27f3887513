/* What code compiled for durable sections (-fspillway-durable) and the runtime agree on: the announcement of stores to
 * persistent memory. The pass writes code against this file, the runtime implements it. It stands beside both engines'
 * parts and needs neither: persistent memory is never managed (abi.h), never the stack and never a global variable. Any
 * change here changes the version in the names below, so that a pass and a runtime of different versions do not link.
 *
 * Test. Before every instruction that may store to persistent memory the pass puts
 *
 *     (uintptr_t)address - __spw_durable_range_v1.first < __spw_durable_range_v1.bytes  =>  __spw_durable_store_v1(address, bytes)
 *
 * on the address as the program has it. The instruction follows in every case. No object lies across an end of the
 * range, so its first byte answers for all.
 *
 *   void __spw_durable_store_v1(void* address, size_t bytes)
 *       `bytes` bytes at `address` are about to be stored. `address` is
 *           in the range, not necessarily in a region; `bytes` may be 0.
 *
 * It uses LLVM's preserve_most calling convention (every general register but r11 is kept;
 * vector registers are not), so a runtime defines it by src/base/preserve_most.inc; a plain
 * C function in its place would destroy registers. It returns in every case, does not
 * throw, and makes no translation (abi.h, "Validity"): raw addresses stay good across it.
 *
 * What is announced. Bytes, exactly: those that the instruction stores, or would if it did not fail (a
 * compare-and-swap), and of a masked store only the lanes that are switched on. So a neighbour's bytes, which another
 * thread may be storing to, are never taken for the thread's own. Only what fills a caller's buffer as far as it has
 * data (read, fread, fgets) and qsort announce all that they were given.
 *
 * Order. A thread has stored what it announced, all of it, when it makes its next announcement, and not before the call
 * returns. So whoever writes back lines of the cache may write those of the last announcement only when the next one
 * comes, or at the end of the section; and one announcement's lines, however many, are pending together. (Inline
 * assembly with several results announces them again once it is done.) Stores side by side, with no call,
 * synchronisation or other announcement between them, may have been announced as one at the first.
 *
 * Range. Its words are read without order, `first` before `bytes`, and may be kept in registers up to the next call or
 * synchronisation. Another thread may meet an old word beside a new one, so while any region is open the runtime leaves
 * `first` as it is and lets `bytes` only grow. A `first` below all addresses that regions are ever given does.
 */
#ifndef SPW_ABI_DURABLE_H
#define SPW_ABI_DURABLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From an address below all that regions are ever given to the highest byte
 * of those that are open; bytes == 0: none is. Defined by the runtime. */
extern struct spw_durable_range {
  uintptr_t first;
  uintptr_t bytes;
} __spw_durable_range_v1;

#ifdef __cplusplus
}
#endif

#endif
