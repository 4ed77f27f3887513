// A slot's undo log: what stood where sections stored, in the order
// in which they did, until those sections are history.
//
// Invariants: between restart()s the records in the chain are those appended, in order;
//             a record is whole before the next one begins where stores leak, a record
//             is durable when append() returns; elsewhere when a later persist() has
// Where stores do not leak, whoever has seen what another's section stored has that one's log persisted before he
// appends (Regions::acquired): a log is never durable ahead of what it follows from.
// Threads: append() and restart() by the slot's owner; persist() by any, also while the owner appends.
// Ordering: end_ is released after a record is in place, and acquired by who persists.
// Limits: a record's payload is at most kPayloadMax; the chain is as long as the heap has room for segments.
#pragma once

#include <deque>
#include <mutex>
#include <set>

#include "base/atomic.h"
#include "durable/layout.h"
#include "durable/persistence.h"

namespace spw::durable {

struct Segment {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
};

// Where a log gets room from when its segments are full. Any thread.
class SegmentSource {
 public:
  // ENOSPC.
  virtual Result<Segment> take_segment(uint64_t bytes_min) = 0;

 protected:
  ~SegmentSource() = default;
};

class UndoLog {
 public:
  UndoLog(const Header& header, uint32_t slot, Segment first, SegmentSource& more, Persistence& domain);

  struct Entry {
    RecordKind kind;
    uint64_t section;
    uint64_t stamp;
    uint64_t address = 0;
    const void* payload = nullptr;
    uint32_t bytes = 0;
  };
  // ENOSPC: there is no room; the log is as it was.
  Status append(const Entry& entry);
  Status persist();
  // All records are history: the next one is the first again.
  void restart();

 private:
  struct Position {
    uint32_t segment, offset;
  };
  static uint64_t packed(Position position) { return uint64_t{position.segment} << 32 | position.offset; }
  static Position unpacked(uint64_t word) {
    return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
  }
  Status go_on(const Entry& entry, uint64_t needed_bytes);
  void put(const Entry& entry, Position at);
  Status settle(const std::byte* record, uint64_t bytes);

  const uint64_t seed_;
  SegmentSource& more_;
  const bool leaks_;
  const std::unique_ptr<Persistence::Writer> writer_;
  std::mutex mutex_;  // segments_ (the owner reads it without), persisted_, writer_ where stores do not leak
  std::deque<Segment> segments_;
  Position end_at_{0, 0};    // the owner's
  Atomic<uint64_t> end_{0};  // the same, for others
  Position persisted_{0, 0};
};

// The records of a slot's log, from the first on. `mapped`: where the
// region's first byte is, which may be elsewhere than it belongs.
class LogReader {
 public:
  LogReader(const Header& header, const std::byte* mapped, uint64_t mapped_bytes, uint32_t slot);

  // The next one, good until the region changes; null at the end.
  const Record* next();
  // After the end: whether a record of a later section than `history` stands behind it in the same segment, which is so
  // only when the record at the end is damaged.
  bool goes_on_behind(uint64_t history) const;
  uint64_t offset() const { return offset_; }  // in the region, of what next() looks at

 private:
  const Record* at(uint64_t offset) const;
  bool follow(const Record& jump);

  const Header& header_;
  const std::byte* const mapped_;
  const uint64_t mapped_bytes_;
  const uint64_t seed_;
  uint64_t offset_, end_;
  uint64_t last_section_ = 0;
  std::set<uint64_t> visited_;  // segments in the heap: a log that goes in circles ends where it began to
};

}  // namespace spw::durable
