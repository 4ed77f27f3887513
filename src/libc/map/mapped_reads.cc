#include "libc/map/mapped_reads.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "libc/managed.h"
#include "libc/real.h"

namespace spw::libc {

namespace {

// The mappings, if the range has a part of one. A forked child's are the kernel's alone: nobody evicts there, and the
// table may have been locked as it was copied.
page_cache::Mappings* reads_in(const void* address, size_t bytes) {
  const Context* c = InRuntime::here() || access::is_forked() ? nullptr : context();
  if (c == nullptr || c->mapped_reads == nullptr || !c->mapped_reads->has(address, bytes)) return nullptr;
  return c->mapped_reads;
}

}  // namespace

bool has_to_be_the_kernels(int flags, int fd) {
  return (flags & MAP_TYPE) != MAP_PRIVATE && (::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

void* map_for_reading(const Context& c, void* address, size_t bytes, int protection, int flags, int fd,
                      off_t offset) {
  if (c.mapped_reads == nullptr || protection != PROT_READ) return nullptr;
  if (c.manages_other_reads && !has_to_be_the_kernels(flags, fd)) return nullptr;
  return c.mapped_reads->map(address, bytes, protection, flags, fd, offset);
}

bool release_reads(const void* address, size_t bytes) {
  page_cache::Mappings* reads = reads_in(address, bytes);
  if (reads == nullptr) return false;
  InRuntime guard;
  return !reads->release(address, bytes).empty();
}

std::optional<void*> remap_reads(void* address, size_t old_bytes, size_t new_bytes, int flags,
                                 void* new_address) {
  page_cache::Mappings* reads = reads_in(address, old_bytes);
  if (reads == nullptr) return std::nullopt;
  InRuntime guard;
  const auto released = reads->release(address, old_bytes);
  void* moved = real().mremap(address, old_bytes, new_bytes, flags, new_address);
  const bool failed = moved == MAP_FAILED;
  // Where it had several it is left to the kernel, as what has holes would have to be.
  if (released.size() == 1)
    reads->restore(released[0], failed ? address : moved, failed ? old_bytes : new_bytes);
  return moved;
}

std::optional<int> protect_reads(void* address, size_t bytes, int protection) {
  if ((protection & (PROT_WRITE | PROT_EXEC)) == 0) return std::nullopt;
  page_cache::Mappings* reads = reads_in(address, bytes);
  if (reads == nullptr) return std::nullopt;
  InRuntime guard;
  return reads->make_writable(address, bytes, protection) ? 0 : -1;
}

std::optional<int> advise_reads(void* address, size_t bytes, int advice) {
  page_cache::Mappings* reads = reads_in(address, bytes);
  if (reads == nullptr) return std::nullopt;
  InRuntime guard;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const bool is_order = advice == MADV_NORMAL || advice == MADV_RANDOM || advice == MADV_SEQUENTIAL;
  if (is_order) reads->table().note_advice(begin, begin + bytes);
  const bool reads_ahead = advice == MADV_WILLNEED || advice == MADV_POPULATE_READ;
  return real().madvise(address, reads_ahead ? reads->read_ahead_bytes(bytes) : bytes, advice);
}

}  // namespace spw::libc
