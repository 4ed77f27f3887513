// Something known of each page of a store, kept in this process's memory for those that were written.
//
//     entry of page p  =  entry p % kLeafPages of leaf p / kLeafPages; where there is no leaf nothing is known
//
// Memory: sizeof(Entry) for each page that was ever written, in whole pages of its own; an entry begins as zeros.
// Threads: any, without locks; leaves are never taken back. What an entry itself bears is its user's matter. In a
// forked child: as the parent's were at the fork.
// Limits: out of native memory ends the process (base/need.h): what is lost here could not be told from what is wrong.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/atomic.h"
#include "base/check.h"
#include "base/need.h"
#include "base/status.h"
#include "base/units.h"
#include "platform/memory.h"

namespace spw::store {

template <class Entry>
class PageTable {
 public:
  static constexpr uint64_t kPageBytes = kMmuPageBytes;
  static constexpr uint64_t kLeafPages = 1 << 18;
  static constexpr uint64_t kLeafBytes = kLeafPages * sizeof(Entry);

  PageTable() = default;
  ~PageTable() {
    for (uint64_t i = 0; i < leaves_; ++i)
      if (Entry* const leaf = root()[i].load_relaxed()) platform::unmap(leaf, kLeafBytes);
  }
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;

  // For the whole pages of a store of that size. What is behind them has no entry.
  Status allocate(uint64_t store_bytes) {
    const uint64_t leaves = store_bytes / kPageBytes / kLeafPages + 1;
    auto memory = platform::map_anonymous(round_up(leaves * sizeof(Atomic<Entry*>), kMmuPageBytes));
    if (!memory) return memory.status();
    root_ = std::move(*memory);
    leaves_ = leaves;
    pages_ = store_bytes / kPageBytes;
    return {};
  }
  uint64_t pages() const { return pages_; }

  // nullptr where nothing is known, or ever will be.
  Entry* find(uint64_t page) const {
    Entry* const leaf = page < pages_ ? root()[page / kLeafPages].load_acquire() : nullptr;
    return leaf == nullptr ? nullptr : leaf + page % kLeafPages;
  }
  // page < pages(). Of two threads that make a leaf at the same time, one's goes.
  Entry& at(uint64_t page) {
    SPW_CHECK(page < pages_);
    if (Entry* const there = find(page)) return *there;
    auto made = platform::map_anonymous(kLeafBytes);
    if (!made) cannot_go_on("get memory for what is known of pages on the store", made.status().error());
    auto* const entries = reinterpret_cast<Entry*>(made->data());
    Entry* none = nullptr;
    if (root()[page / kLeafPages].cas_strong_acq_rel(none, entries)) (void)made->release();
    return *find(page);
  }
  // Calls visit(entry) for those that there are.
  template <class Visit>
  void for_each(uint64_t first, uint64_t count, Visit visit) const {
    const uint64_t end = std::min(first + count, pages_);
    for (uint64_t page = first; page < end; ++page)
      if (Entry* const entry = find(page))
        visit(*entry);
      else
        page |= kLeafPages - 1;  // on to the next leaf
  }

 private:
  Atomic<Entry*>* root() const { return reinterpret_cast<Atomic<Entry*>*>(root_.data()); }

  platform::Mapping root_;
  uint64_t pages_ = 0, leaves_ = 0;
};

}  // namespace spw::store
