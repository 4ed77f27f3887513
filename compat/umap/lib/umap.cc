// The functions of umap.h: arguments checked, errors to errno, exceptions to ENOMEM.
#include "umap/umap.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <new>
#include <string>

#include "config.h"
#include "file_store.h"
#include "mappings.h"

namespace Umap {

namespace {

Mappings& mappings() {
  static Mappings* all = [] {
    for (const std::string& line : config().warnings) std::fprintf(stderr, "umap: %s\n", line.c_str());
    return new Mappings(backend());  // never destroyed: threads may outlive main()
  }();
  return *all;
}

// 0, or why the arguments cannot be.
int check(void* addr, std::size_t length, int prot, int flags, off_t offset) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (length == 0 || length > SIZE_MAX / 2) return EINVAL;
  if (prot == 0 || (prot & ~(PROT_READ | PROT_WRITE)) != 0) return EINVAL;
  if ((flags & UMAP_PRIVATE) == 0 || (flags & ~(UMAP_PRIVATE | UMAP_FIXED)) != 0) return EINVAL;
  if (offset < 0 || static_cast<std::size_t>(offset) % page != 0) return EINVAL;
  if ((flags & UMAP_FIXED) && (!addr || reinterpret_cast<uintptr_t>(addr) % page != 0)) return EINVAL;
  return 0;
}

// 0 or a positive errno.
int set_errno(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

}  // namespace

void* umap_ex(void* addr, std::size_t length, int prot, int flags, int fd, off_t offset, Store* store) {
  int error = check(addr, length, prot, flags, offset);
  if (error == 0) {
    try {
      std::unique_ptr<Store> own;
      if (!store) {
        auto file = std::make_unique<FileStore>(fd, offset, length);
        if (!file->is_open()) return errno = EBADF, UMAP_FAILED;
        own = std::move(file);
        offset = 0;  // the file's store begins there
      }
      void* fixed = (flags & UMAP_FIXED) ? addr : nullptr;
      Backend::Mapped mapped =
          mappings().add(fixed, length, (prot & PROT_WRITE) != 0, offset, store, std::move(own));
      if (mapped.error == 0) return mapped.address;
      error = mapped.error;
    } catch (const std::bad_alloc&) {
      error = ENOMEM;
    }
  }
  errno = error;
  return UMAP_FAILED;
}

}  // namespace Umap

void* umap(void* addr, size_t length, int prot, int flags, int fd, off_t offset) {
  return Umap::umap_ex(addr, length, prot, flags, fd, offset, nullptr);
}

int uunmap(void* addr, size_t length) { return Umap::set_errno(Umap::mappings().remove(addr, length)); }

int umap_flush(void) {
  try {
    return Umap::set_errno(Umap::mappings().flush_all());
  } catch (const std::bad_alloc&) {
    return Umap::set_errno(ENOMEM);
  }
}

int umap_has_write_support(void) { return 1; }

void umap_prefetch(int npages, struct umap_prefetch_item* page_array) {
  for (int i = 0; i < npages; ++i)
    Umap::mappings().prefetch(page_array[i].page_base_addr, Umap::config().page_bytes);
}

void umap_fetch_and_pin(char* paddr, uint64_t size) {
  (void)Umap::set_errno(Umap::mappings().pin(paddr, size));
}

long umapcfg_get_system_page_size(void) { return ::sysconf(_SC_PAGESIZE); }
uint64_t umapcfg_get_umap_page_size(void) { return Umap::config().page_bytes; }
uint64_t umapcfg_get_max_fault_events(void) { return Umap::kFaultEventsMax; }
uint64_t umapcfg_get_num_fillers(void) { return Umap::config().fillers; }
uint64_t umapcfg_get_num_evictors(void) { return Umap::config().evictors; }
uint64_t umapcfg_get_max_pages_in_buffer(void) {
  return Umap::backend().buffer_bytes() / Umap::config().page_bytes;
}
uint64_t umapcfg_get_read_ahead(void) { return Umap::config().read_ahead_pages; }
int umapcfg_get_evict_low_water_threshold(void) { return Umap::config().low_water_percent; }
int umapcfg_get_evict_high_water_threshold(void) { return Umap::config().high_water_percent; }
