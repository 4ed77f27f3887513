// What is known of each page of a store that was written: its checksum.
//
//     sum of page p  =  entry p % kLeafPages of leaf p / kLeafPages; 0: not known
//
// Memory: 4 bytes for each page that was ever written, in whole pages of its own.
// Threads: any, without locks: an entry is read and set as a whole. Who reads a page's contents has seen the write of
// them end, and nobody writes them meanwhile; so the entry is of what is read. (The cache: a block is on its way in or
// on its way out, never both.) In a forked child: as the parent's were at the fork.
// Limits: out of native memory is a check failure: a sum that is lost could not be told from one that is wrong.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "base/atomic.h"
#include "base/status.h"
#include "base/units.h"
#include "platform/memory.h"
#include "store/checked/checksum.h"

namespace spw::store {

class PageSums {
 public:
  static constexpr uint64_t kPageBytes = kSummedBytes;
  static constexpr uint64_t kLeafPages = 1 << 18;  // a leaf is 1 MiB of addresses

  PageSums() = default;
  ~PageSums();
  PageSums(const PageSums&) = delete;
  PageSums& operator=(const PageSums&) = delete;
  // For a store of that size. What is behind its last whole page is never compared: it is not kept there.
  Status allocate(uint64_t store_bytes);

  // `segments` are being written from `offset_bytes` on; of whole pages, as all here.
  void note(uint64_t offset_bytes, std::span<const iovec> segments);
  // Nothing is known of them.
  void forget(uint64_t offset_bytes, uint64_t bytes);
  // They will be asked for soon.
  void prefetch(uint64_t offset_bytes) const {
    const uint64_t page = offset_bytes / kPageBytes;
    if (page >= pages_) return;
    if (const Entry* const entries = root_[page / kLeafPages].load_acquire())
      __builtin_prefetch(entries + page % kLeafPages);
  }
  // Whether `segments`, which were read from `offset_bytes` on, are what was written there, as far as that is known.
  bool are_as_written(uint64_t offset_bytes, std::span<const iovec> segments) const;

 private:
  using Entry = Atomic<uint32_t>;
  Entry* leaf(uint64_t index);
  uint32_t sum(const std::byte* page) const;

  Checksum checksum_ = nullptr;
  ChecksumSecret secret_{};
  platform::Mapping root_memory_;
  uint64_t pages_ = 0, leaves_ = 0;
  Atomic<Entry*>* root_ = nullptr;
};

}  // namespace spw::store
