// The checksum of each page of a store that was written; 0: not known.
//
// Threads: any, without locks: a sum is read and set as a whole. Who reads a page's contents has seen the write of
// them end, and nobody writes them meanwhile; so the sum is of what is read. (The cache: a block is on its way in or
// on its way out, never both.)
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/status.h"
#include "store/checked/checksum.h"
#include "store/checked/page_table.h"
#include "store/store.h"

namespace spw::store {

class PageSums {
 public:
  static constexpr uint64_t kPageBytes = kSummedBytes;

  Status allocate(uint64_t store_bytes);

  // What the request writes is on its way; of whole pages, as all here.
  void note(const Request& write);
  // Nothing is known of them.
  void forget(uint64_t offset_bytes, uint64_t bytes);
  // They will be asked for soon.
  void prefetch(uint64_t offset_bytes) const { __builtin_prefetch(sums_.find(offset_bytes / kPageBytes)); }
  // Whether what the request has read is what was written there, as far as that is known.
  bool are_as_written(const Request& read) const;

 private:
  uint32_t sum(const std::byte* page) const;

  Checksum checksum_ = nullptr;
  ChecksumSecret secret_{};
  PageTable<Atomic<uint32_t>> sums_;
};

}  // namespace spw::store
