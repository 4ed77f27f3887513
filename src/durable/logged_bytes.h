// Which bytes a section has in its log already: their first contents
// are what a rollback restores, so they are logged once.
//
// A hash table from lines to masks of a bit a byte. By the byte, since threads may store to neighbouring bytes of a
// line under different locks, and what one restores must not be what another has stored.
// Threads: one. Memory: 24 bytes for each line of the largest section so far, twice.
#pragma once

#include <cstdint>
#include <vector>

#include "durable/layout.h"

namespace spw::durable {

class LoggedBytes {
 public:
  LoggedBytes() : entries_(kEntriesMin) {}

  // The mask of a line's bytes that are logged; may be changed until the next call.
  uint64_t& mask(uint64_t line) {
    if (line == last_line_) return entries_[last_].mask;
    if (2 * used_ >= entries_.size()) grow();
    last_ = find(line);
    last_line_ = line;
    Entry& entry = entries_[last_];
    if (entry.epoch != epoch_) {
      entry = {line, 0, epoch_};
      ++used_;
    }
    return entry.mask;
  }

  void clear() {
    ++epoch_;
    used_ = 0;
    last_line_ = kNoLine;
  }

 private:
  struct Entry {
    uint64_t line = 0, mask = 0, epoch = 0;
  };
  static constexpr size_t kEntriesMin = 256;
  static constexpr uint64_t kNoLine = UINT64_MAX;

  size_t find(uint64_t line) const {
    const size_t last = entries_.size() - 1;
    size_t at = (line * 0x9E3779B97F4A7C15u) >> 32 & last;
    while (entries_[at].epoch == epoch_ && entries_[at].line != line) at = (at + 1) & last;
    return at;
  }
  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.epoch == epoch_) entries_[find(entry.line)] = entry;
    last_line_ = kNoLine;
  }

  std::vector<Entry> entries_;
  uint64_t epoch_ = 1;
  size_t used_ = 0;
  uint64_t last_line_ = kNoLine;
  size_t last_ = 0;
};

}  // namespace spw::durable
