// The file mappings that the kernel serves and the evictor goes over.
//
// Invariants: mappings do not overlap. While a part of one is taken, it is mapped: who is about to unmap it, or to lock
//   or write to it, takes it out of the table first, and remove() waits until no part of it is taken. So an evictor
//   never gives up pages of something else that has come to stand at the same addresses.
// Advice: a mapping begins as kRandom, each miss reads its page. One that is gone through, be it with gaps, gets the
//   kernel's readahead, and loses it when it is not any more; one that the program advised itself keeps its advice.
//   What tells is where pages have come from one look to the next: near each other, or all over the mapping. How many
//   are present in a row does not: a scan that uses every other page leaves runs of one, and a mapping of which most is
//   in memory has long ones whatever is done to it.
// Threads: any (one mutex, a condition for remove()). Limits: none; an entry a mapping, split where a part is removed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/atomic.h"
#include "platform/file.h"

namespace spw::page_cache {

struct Mapping {
  uintptr_t begin = 0, end = 0;
  std::shared_ptr<const platform::File> file;
  uint64_t offset_bytes = 0;  // in the file, of `begin`
  bool is_shared = false;     // as the program asked; to the kernel all are private
};

class MappingTable {
 public:
  // A mapping is looked at in units. Pages that have come to a unit where some have, on average, from which readahead
  // is worth its bytes, and below which it is not: a page that is read by itself takes a disk as long as sixteen in
  // a row.
  static constexpr uint64_t kUnitBytes = 2u << 20;
  static constexpr uint64_t kCameForReadahead = 64, kCameForSinglePages = 32;
  // Pages that came all over a mapping are many to a unit too, once they are many: of the units one in so many, at
  // most, may have got some where it is being gone through.
  static constexpr uint64_t kUnitsShare = 4;

  void add(const Mapping& mapping);
  // Takes [begin, end) out and says what was there of it.
  std::vector<Mapping> remove(uintptr_t begin, uintptr_t end);
  bool overlaps(uintptr_t begin, uintptr_t end) const;
  bool is_empty() const { return count_.load_relaxed() == 0; }
  std::optional<Mapping> find(uintptr_t address) const;

  // The next part, at most `bytes` of one mapping, from `at` on; nothing when nothing is behind `at`.
  std::optional<Mapping> take(uintptr_t at, uint64_t bytes);
  void give_back(const Mapping& part);
  // The same, and how many pages of each of its units were present. A look goes over the parts of a mapping in order.
  void give_back(const Mapping& part, std::span<const uint16_t> present);
  // Of the mapping at `address`: the kernel has been told to.
  bool reads_ahead(uintptr_t address) const;
  // The program has said how it uses the range.
  void note_advice(uintptr_t begin, uintptr_t end);

 private:
  struct Entry {
    Mapping mapping;
    unsigned taken = 0;
    bool is_closing = false;
    bool is_advised = false;  // by the program
    bool reads_ahead = false;
    std::vector<uint16_t> present;  // in each unit, when it was looked at last; empty: not known
    uint64_t came = 0,
             units_got = 0;  // of the look that is under way: pages that have come, to so many units
  };
  using Entries = std::map<uintptr_t, Entry>;  // by begin

  Entries::const_iterator first_behind(uintptr_t address) const;
  Entries::iterator first_behind(uintptr_t address);
  void cut(Entries::iterator at, uintptr_t begin, uintptr_t end, std::vector<Mapping>* removed);
  void give_back(Entry& entry);
  static void adapt_advice(Entry& entry);

  mutable std::mutex mutex_;
  std::condition_variable given_back_;
  Entries entries_;
  Atomic<size_t> count_{0};  // entries_.size(), for those who only want to know whether there is one
};

// What is left of a mapping within [begin, end).
Mapping part_of(const Mapping& mapping, uintptr_t begin, uintptr_t end);

}  // namespace spw::page_cache
