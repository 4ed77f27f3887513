// The file mappings that the kernel serves and the evictor goes over.
//
// Invariants: mappings do not overlap. While a part of one is taken, it is mapped: who is about to unmap it, or to lock
//   or write to it, takes it out of the table first, and remove() waits until no part of it is taken. So an evictor
//   never gives up pages of something else that has come to stand at the same addresses.
// Advice: a mapping begins as kRandom, each miss reads its page. One whose pages are used in long runs gets the
//   kernel's readahead, and loses it when they are not any more; one that the program advised itself keeps its advice.
// Threads: any (one mutex, a condition for remove()). Limits: none; an entry a mapping, split where a part is removed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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
  // Pages that follow each other, on average, from which readahead is worth its bytes, and below which it is not. The
  // kernel reads 32 at a time unless told otherwise.
  static constexpr uint64_t kRunForReadahead = 16, kRunForSinglePages = 8;

  void add(const Mapping& mapping);
  // Takes [begin, end) out and says what was there of it.
  std::vector<Mapping> remove(uintptr_t begin, uintptr_t end);
  bool overlaps(uintptr_t begin, uintptr_t end) const;
  bool is_empty() const { return count_.load_relaxed() == 0; }
  std::optional<Mapping> find(uintptr_t address) const;

  // The next part, at most `bytes` of one mapping, from `at` on; nothing when nothing is behind `at`.
  std::optional<Mapping> take(uintptr_t at, uint64_t bytes);
  // `pages` of the part were present, in `runs`.
  void give_back(const Mapping& part, uint64_t pages, uint64_t runs);
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
    uint64_t pages = 0, runs = 0;  // recent ones: halved as they become many
  };
  using Entries = std::map<uintptr_t, Entry>;  // by begin

  Entries::const_iterator first_behind(uintptr_t address) const;
  Entries::iterator first_behind(uintptr_t address);
  void cut(Entries::iterator at, uintptr_t begin, uintptr_t end, std::vector<Mapping>* removed);
  static void adapt_advice(Entry& entry);

  mutable std::mutex mutex_;
  std::condition_variable given_back_;
  Entries entries_;
  Atomic<size_t> count_{0};  // entries_.size(), for those who only want to know whether there is one
};

// What is left of a mapping within [begin, end).
Mapping part_of(const Mapping& mapping, uintptr_t begin, uintptr_t end);

}  // namespace spw::page_cache
