// Mappings of files that are only read, left to the kernel's page cache, within a limit of ours.
//
// To read a mapped file the kernel's own page cache is the shortest way: the page that the disk writes is the one that
// the program reads, a miss costs one fault, and system calls, other processes and forked children need nothing of us.
// Bringing it in through the cache costs a signal, a copy and a call more, twice the processor time. What is missing in
// the kernel's way is a limit, and eviction that is not done by whoever misses: both are the Evictor's.
//
// All are mapped privately, also those that the program asked for as shared: as long as nobody writes to them there is
// no difference, and only such ranges may be registered (FilePages::fault_singly) where the file is open for reading
// only. A shared one that is to be written to is mapped anew, shared.
// Threads: any. Errors: libc's. Lifetime: the process's.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "page_cache/evictor.h"
#include "page_cache/mapping_table.h"

namespace spw::page_cache {

class Mappings {
 public:
  // ENOTSUP, EPERM, ...: as FilePages::open().
  static Result<std::unique_ptr<Mappings>> create(Evictor::Limit limit, Evictor::Lost lost);

  // mmap() of a file to be read. nullptr: it was not mapped, whoever asks may try otherwise.
  void* map(void* wanted, size_t bytes, int protection, int flags, int fd, off_t offset);
  // From now on [address, + bytes) is none of ours: before it is unmapped, replaced or written to.
  std::vector<Mapping> release(const void* address, size_t bytes);
  // It is ours again, where mremap() has moved it: what was released, with its new size.
  void restore(const Mapping& released, void* address, size_t bytes);
  // mprotect() to writable: false with errno set.
  bool make_writable(void* address, size_t bytes, int protection);
  // MADV_WILLNEED: so much may be read ahead without crowding out the rest.
  size_t read_ahead_bytes(size_t bytes) const;

  bool has(const void* address, size_t bytes) const {
    const auto begin = reinterpret_cast<uintptr_t>(address);
    return table_.overlaps(begin, begin + bytes);
  }
  MappingTable& table() { return table_; }
  Evictor& evictor() { return evictor_; }

 private:
  Mappings(platform::FilePages pages, Evictor::Limit limit, Evictor::Lost lost)
      : pages_(std::move(pages)), evictor_(table_, pages_, std::move(limit), lost) {}
  bool adopt(const Mapping& mapping);

  const platform::FilePages pages_;
  MappingTable table_;
  Evictor evictor_;
};

}  // namespace spw::page_cache
