// One thread's part in one region: its log, the section it has open there, its cache of lines to write back.
//
// States of a section:
//     none --begin()--> open --end()--> history                  when nothing it depends on is unfinished
//                        |      `-----> complete --> history      otherwise; made so by whoever ends the last of what it depends on
//                        `--restore()--> open, with nothing changed: it ends as any other
//
// A store in an open section: 1. what stands there goes to the log, unless
// this section has logged it; where stores leak, that is durable now;
// 2. the caller stores; 3. the line is written back when the technique gives it up, at the latest by end(). end(): all
// lines are durable, then either the slot's word makes the section history, or a record says that it is complete. An
// announcement's lines are stored to after it: a line of it that the technique gives up at once waits for the next
// announcement, or the end. A store outside of sections is not logged; its line is written back with those of the
// thread's next section, or by sync().
//
// Invariants: history_ <= completed_ <= section number; what the slot's word in the region says is history_
// Threads: the owner; history() any; write_history() and settled() by who holds the pending mutex of Sections, or by
// the owner while nothing of his is pending (Sections::end).
// Limits: section numbers have kPayloadBits bits.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/atomic.h"
#include "durable/combining/write_combiner.h"
#include "durable/logged_bytes.h"
#include "durable/recovery.h"
#include "durable/undo_log.h"

namespace spw::durable {

// Of a thread in a region, or of all of them. Counts, but for log_bytes.
struct Counts {
  uint64_t stores = 0;         // that the program announced
  uint64_t lines_flushed = 0;  // written back for them
  uint64_t sections = 0;       // that have ended
  uint64_t records = 0, log_bytes = 0;
};

class Slot final : private LineFlusher {
 public:
  Slot(const RegionView& region, uint32_t number, uint64_t history, Segment first, SegmentSource& more,
       Persistence& domain, const CombinerOptions& combiner);

  uint32_t number() const { return number_; }
  bool is_open() const { return section_ != 0; }
  uint64_t section() const { return section_; }
  uint64_t completed() const { return completed_; }
  uint64_t history() const { return history_.load_seq_cst(); }

  void begin();
  // The time of the last thread that had it.
  uint64_t left_at() const { return left_at_; }
  void leave_at(uint64_t stamp) { left_at_ = stamp; }
  // The bytes at `at` are about to be changed by the program. ENOSPC: the log has no room; the store must not be made.
  Status before_store(uint64_t at, size_t bytes, uint64_t stamp);
  // The same for what the runtime itself stores: it is not counted, and goes around the technique.
  Status before_own_store(uint64_t at, size_t bytes, uint64_t stamp);
  // Memory that nobody had at the section's beginning: what stands there need not be restored.
  void is_fresh(uint64_t at, size_t bytes);
  Status depend_on(const Dependence& on, uint64_t stamp);
  // Only while it is open: those not history yet may be fewer.
  std::vector<Dependence>& dependences() { return depends_on_; }
  // The objects that are free once the section is history: those that
  // it freed, and those it allocated before it was undone.
  std::vector<uint64_t>& freed() { return freed_; }
  std::vector<uint64_t> take_freed();
  std::vector<uint64_t>& allocated() { return allocated_; }

  // All lines of the section are durable.
  Status flush_lines();
  // After flush_lines(): says so in the log, and closes the section.
  Status complete(uint64_t stamp);
  // Closes the section without.
  void close();
  // The section and all before it are history, once `fence` has followed on `writer` and settled() on that.
  void write_history(uint64_t section, Persistence::Writer& writer);
  void settled(uint64_t section) { history_.store_seq_cst(section); }
  // Puts back what stood where the open section has stored.
  void restore();
  Status persist_log() { return log_.persist(); }
  Persistence::Writer& writer() { return *writer_; }

  Counts counts() const;
  uint32_t cache_size() const { return combiner_->size(); }
  const WriteCombiner& combiner() const { return *combiner_; }

 private:
  void flush(Line line) override;
  void note_written(uint64_t at, size_t bytes);
  void write_deferred();
  Status log_old_bytes(uint64_t at, size_t bytes, uint64_t stamp);
  Status log_large(uint64_t at, size_t bytes, uint64_t stamp);
  Status append_old(uint64_t at, size_t bytes, uint64_t stamp);

  const RegionView& region_;
  const uint32_t number_;
  const unsigned grain_shift_;
  UndoLog log_;
  const std::unique_ptr<Persistence::Writer> writer_;
  const std::unique_ptr<WriteCombiner> combiner_;
  LoggedBytes logged_;
  uint64_t section_ = 0;  // 0: none is open
  uint64_t completed_;
  Atomic<uint64_t> history_;
  bool has_lines_ = false;
  Line announced_first_ = 1, announced_last_ = 0;  // of the last announcement
  std::vector<Line> deferred_;                     // of these, given up already
  std::vector<std::pair<uint64_t, size_t>> own_stores_;
  std::vector<Dependence> depends_on_;
  std::vector<uint64_t> freed_, allocated_, undone_;
  std::vector<std::pair<uint64_t, uint64_t>> fresh_;  // large pieces that need not be logged: first, end
  uint64_t left_at_ = 0;
  Atomic<uint64_t> stores_{0}, lines_flushed_{0}, sections_{0}, records_{0}, log_bytes_{0};
};

}  // namespace spw::durable
