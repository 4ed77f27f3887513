// What the kernel has in memory of files that this process maps, and how to have it given up.
//
// A page of a mapped file is *present* where the process's page table has it, and *cached*
// where the kernel's page cache has it. To be evicted it goes twice: unmap_pages() takes it
// out of the page table, and drop_cached() out of the page cache, which keeps what is present
// anywhere. What is touched between the two faults without a read, and stays: a second chance.
// Threads: any, at the same time. Lifetime: opened once, since /proc may be out of reach later. A forked child's
// answers are its parent's. Limits: addresses and sizes are multiples of the MMU page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "platform/file.h"

namespace spw::platform {

class FilePages {
 public:
  // ENOTSUP before Linux 6.7; else as UserFault::open(), and of /proc.
  static Result<FilePages> open();

  // A fault in the range, which is privately mapped, makes present the one page that is touched: by itself the kernel
  // adds those around it that are cached, and nobody could tell which ones are used.
  Status fault_singly(uintptr_t begin, uint64_t bytes) const;

  struct Run {
    uintptr_t begin = 0, end = 0;
    uint64_t pages() const;
  };
  struct Scan {
    std::span<Run> runs;    // of neighbours that are present, rising
    uint64_t pages = 0;     // in them
    uintptr_t reached = 0;  // what is behind was not looked at
  };
  // What is present of [begin, end), as far as it is in ranges of fault_singly(): at most into.size() runs.
  Result<Scan> present(uintptr_t begin, uintptr_t end, std::span<Run> into) const;

  // Present pages of all files that the process maps, shared memory included. Costs a microsecond.
  Result<uint64_t> present_pages() const;

 private:
  File page_map_, userfault_, counts_;
};

// EINVAL: some are locked in memory, or no longer mapped.
Status unmap_pages(uintptr_t begin, uint64_t bytes);
// A part of the file that is cached and present nowhere.
void drop_cached(const File& file, uint64_t offset_bytes, uint64_t bytes);

}  // namespace spw::platform
