// Freed ranges whose space the spill store has not been given back yet, so that many small frees become few requests.
//
// A range that is handed out again leaves the list first (cancel): its old bytes on the store do no harm, because
// blocks without contents are never read, and a late discard would destroy new ones.
// Invariants: ranges are disjoint, not empty, sorted by offset and never touch (touching ones are joined).
// Threads: the caller serialises. Limits: kPendingMax ranges; kPendingBytesMax bytes wait at most.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "base/units.h"
#include "store/store.h"

namespace spw::region {

// Gives the store's space back. One that cannot (EOPNOTSUPP) keeps it: nothing is wrong, only larger.
void give_back(store::Store& store, uint64_t offset_bytes, uint64_t bytes);

class HoleList {
 public:
  static constexpr size_t kPendingMax = 64;
  static constexpr uint64_t kPendingBytesMax = 64 * kMiB;

  explicit HoleList(store::Store& store) : store_(&store) {}
  // An empty list's.
  void set_store(store::Store& store) { store_ = &store; }

  // Discards [offset, offset + bytes) of the store, now or later.
  void add(uint64_t offset_bytes, uint64_t bytes);
  void cancel(uint64_t offset_bytes, uint64_t bytes);
  void flush();
  // Calls visit(begin, end) for what waits, and forgets it.
  template <class Visit>
  void take_all(Visit visit) {
    for (size_t i = 0; i < count_; ++i) visit(ranges_[i].begin, ranges_[i].end);
    count_ = 0;
    pending_bytes_ = 0;
  }
  uint64_t pending_bytes() const { return pending_bytes_; }
  void check_invariants() const;

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
  };
  void insert_at(size_t index, Range range);
  void erase_at(size_t index);

  store::Store* store_;
  Range ranges_[kPendingMax] = {};
  size_t count_ = 0;
  uint64_t pending_bytes_ = 0;
};

}  // namespace spw::region
