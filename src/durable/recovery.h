// After a crash: which sections were whole, and undoing the others.
//
// A section counts when its slot's word says so, or when its log says that it was complete and all
// that it depends on counts: what it depends on are the sections of its own slot before it and those
// that its records name. Of each slot the sections from the first that does not count on are undone;
// all of them together in the reverse order of their stamps, so that what was stored first is restored
// last. (Atlas, OOPSLA 2014: sections that saw what an incomplete one had stored go with it.)
//
// A crash in a recovery is mended by the next: undoing again restores the same bytes; when everything is undone, the
// next epoch makes all logs history by one store.
// Threads: one; nobody else has the region.
#pragma once

#include <string>
#include <vector>

#include "durable/layout.h"
#include "durable/persistence.h"

namespace spw::durable {

// A region as it is mapped: for a check not always where it belongs.
struct RegionView {
  std::byte* mapped = nullptr;
  uint64_t bytes = 0;

  Header& header() const { return *reinterpret_cast<Header*>(mapped); }
  SlotWord& slot(uint32_t slot) const {
    return reinterpret_cast<SlotWord*>(mapped + header().slots_offset)[slot];
  }
  Root* roots() const { return reinterpret_cast<Root*>(mapped + header().roots_offset); }
  // Checked words, each of its chunk_place().
  uint64_t* chunks() const { return reinterpret_cast<uint64_t*>(mapped + header().chunks_offset); }
  std::byte* chunk_at(uint64_t chunk) const { return mapped + header().heap_offset + chunk * kChunkBytes; }
  uint64_t chunk_count() const { return (bytes - header().heap_offset) / kChunkBytes; }
  bool holds(uint64_t address, uint64_t length) const {
    return address >= header().base && address - header().base <= bytes &&
           length <= bytes - (address - header().base);
  }
  // What sections may store to: objects, and their names.
  bool may_change(uint64_t address, uint64_t length) const {
    const uint64_t offset = address - header().base, end = offset + length;
    return holds(address, length) && (offset >= header().heap_offset ||
                                      (offset >= header().roots_offset && end <= header().slots_offset));
  }
  std::byte* at(uint64_t address) const { return mapped + (address - header().base); }
};

// What one slot's log says.
struct SlotHistory {
  struct Section {
    uint64_t number = 0;
    bool complete = false;
    std::vector<Dependence> depends_on;
    std::vector<const Record*> old_bytes;
  };
  uint64_t history = 0;  // the last section that is history
  std::vector<Section> sections;
  size_t kept = 0;  // the first so many count
};

// EILSEQ: a log, the epoch or a word is damaged; nothing was changed, and the message says
// where. A damaged record in the middle of a log is told from one that a crash
// left half written only where stores leak (records are durable one by one there).
Result<std::vector<SlotHistory>> read_histories(const RegionView& region, bool stores_leak);

// Bytes to put back. The record as it was when it was read: where logs lie is not believed, so one step may put bytes
// over the record of the next.
struct Undo {
  uint32_t slot;
  size_t position;
  Record record;
  const std::byte* old_bytes;
};
// Those of all sections that do not count, the last store first.
std::vector<Undo> to_undo(const std::vector<SlotHistory>& histories);
// The roots as they are once that is done.
std::vector<Root> roots_after(const RegionView& region, const std::vector<Undo>& undo);
// What is wrong with a root; null: nothing is.
const char* fault_of(const Root& root, const RegionView& region, uint32_t number);

struct Recovery {
  uint64_t sections_undone = 0, sections_kept = 0, records_undone = 0;
};
// Brings the region back to where only whole sections have been. EIO,
// EILSEQ: the region must not be used; what was committed is in it still.
Result<Recovery> recover(const RegionView& region, Persistence& domain);

}  // namespace spw::durable
