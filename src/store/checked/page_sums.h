// The checksum of each page of a store that was written; 0: not known.
//
// Threads: any, without locks: a sum is read and set as a whole. Who reads a page's contents has seen the write of
// them end, and nobody writes them meanwhile; so the sum is of what is read. (The cache: a block is on its way in or
// on its way out, never both.)
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "base/atomic.h"
#include "base/status.h"
#include "store/checked/checksum.h"
#include "store/checked/page_table.h"

namespace spw::store {

class PageSums {
 public:
  static constexpr uint64_t kPageBytes = kSummedBytes;

  Status allocate(uint64_t store_bytes);

  // `segments` are being written from `offset_bytes` on; of whole pages, as all here.
  void note(uint64_t offset_bytes, std::span<const iovec> segments);
  // Nothing is known of them.
  void forget(uint64_t offset_bytes, uint64_t bytes);
  // They will be asked for soon.
  void prefetch(uint64_t offset_bytes) const { __builtin_prefetch(sums_.find(offset_bytes / kPageBytes)); }
  // Whether `segments`, which were read from `offset_bytes` on, are what was written there, as far as that is known.
  bool are_as_written(uint64_t offset_bytes, std::span<const iovec> segments) const;

 private:
  uint32_t sum(const std::byte* page) const;

  Checksum checksum_ = nullptr;
  ChecksumSecret secret_{};
  PageTable<Atomic<uint32_t>> sums_;
};

// Calls visit(page's number, its contents) for each page of a transfer, until it says false.
template <class Visit>
bool for_each_page(uint64_t offset_bytes, std::span<const iovec> segments, Visit visit) {
  uint64_t page = offset_bytes / PageSums::kPageBytes;
  for (const iovec& segment : segments)
    for (size_t at = 0; at < segment.iov_len; at += PageSums::kPageBytes)
      if (!visit(page++, static_cast<std::byte*>(segment.iov_base) + at)) return false;
  return true;
}

}  // namespace spw::store
