/* UMap's interface (LLNL UMap 2) over Spillway: programs written for it compile and run unchanged.
 *
 *     void* data = umap(NULL, bytes, PROT_READ | PROT_WRITE, UMAP_PRIVATE, fd, offset);
 *     ... uunmap(data, bytes);
 *
 * What is different, so that it is right:
 *   - umap() and umap_ex() honour `offset`, a multiple of the system's page size.
 *   - Nothing throws. A call that fails returns UMAP_FAILED or -1 and sets errno to a positive number.
 *   - A store's short reads and writes are continued; what lies behind its end reads as zeros. An exception that leaves
 *     a store's function is an I/O error of the block.
 *   - `length` need not be a multiple of the page: the last page reads zeros behind it, which are never written.
 *   - The descriptor may be closed after umap(); uunmap() of less than a whole mapping fails with EINVAL. A length
 *     that reaches beyond the mapping's end counts as that end: Metall unmaps a page more than it has mapped.
 * As in UMap, UMAP_PRIVATE does not mean private: what is stored to the mapping reaches the file or store, at the
 * latest with umap_flush() or uunmap().
 *
 * Threads: every function may be called by any thread at any time. Limits: UMAP_PAGESIZE is raised to a power of two, 2
 * MiB at most; umapcfg_get_umap_page_size() says what it became. */
#ifndef UMAP_UMAP_H
#define UMAP_UMAP_H

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "umap/store/Store.hpp"
#else
#include <stddef.h>
#include <stdint.h>
#endif

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#define UMAP_PRIVATE MAP_PRIVATE /* always needed */
#define UMAP_FIXED MAP_FIXED
#define UMAP_FAILED ((void*)-1)

#ifdef __cplusplus
namespace Umap {
/* As umap(), on bytes [offset, offset + length) of `store`, which stays the caller's and outlives the mapping. A null
 * pointer means the file `fd`. */
void* umap_ex(void* addr, std::size_t length, int prot, int flags, int fd, off_t offset, Store* store);
}  // namespace Umap
extern "C" {
#endif

struct umap_prefetch_item {
  void* page_base_addr;
};

/* Maps bytes [offset, offset + length) of the file. prot: PROT_READ, PROT_WRITE
 * or both; flags: UMAP_PRIVATE, and UMAP_FIXED to have it at `addr`. EINVAL,
 * ENOMEM, ENOTSUP (UMAP_FIXED where it is not possible), or what the file said. */
void* umap(void* addr, size_t length, int prot, int flags, int fd, off_t offset);
int uunmap(void* addr, size_t length);
/* Everything stored to mappings until now is in their files and stores when it returns 0. */
int umap_flush(void);
int umap_has_write_support(void);
/* Asks for the pages that hold these addresses, without waiting. */
void umap_prefetch(int npages, struct umap_prefetch_item* page_array);
/* Brings [paddr, paddr + size) in and keeps it in memory until it is unmapped. */
void umap_fetch_and_pin(char* paddr, uint64_t size);

/* What is in force, by environment variables or by default (docs in compat/umap/README.md). */
long umapcfg_get_system_page_size(void);
uint64_t umapcfg_get_umap_page_size(void);
uint64_t umapcfg_get_max_fault_events(void);
uint64_t umapcfg_get_num_fillers(void);
uint64_t umapcfg_get_num_evictors(void);
uint64_t umapcfg_get_max_pages_in_buffer(void);
uint64_t umapcfg_get_read_ahead(void);
int umapcfg_get_evict_low_water_threshold(void);
int umapcfg_get_evict_high_water_threshold(void);

#ifdef __cplusplus
}
#endif

#endif
