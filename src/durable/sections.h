// The sections of a region: who has which slot, and when a section that has ended becomes history.
//
// A section that has seen what an unfinished one stored (it took a lock that the other released within) becomes history
// only with or after it; until then it is *pending*: complete, its records kept. Whoever makes a section history looks
// whether others wait for it; of those, all go together that depend on nothing unfinished outside of them.
//
// Ordering: an owner adds to pending_count_ and then looks at the others' history; whoever made history then looks at
// pending_count_: both seq_cst, so that one of them sees the other.
// Threads: any; a slot belongs to one. Errors: once a write has failed, what is durable is unknown: everything is
// refused from then on, and the file, opened again, has all sections that ended before.
// Limits: as many threads at once as the region has slots.
#pragma once

#include <mutex>
#include <vector>

#include "durable/slot.h"

namespace spw::durable {

// Told which objects nobody can want back any more. Any thread.
class FreedObjects {
 public:
  virtual void are_free(const std::vector<uint64_t>& addresses) = 0;

 protected:
  ~FreedObjects() = default;
};

class Sections final : public Persistence::Logs {
 public:
  Sections(const RegionView& region, Persistence& domain, SegmentSource& segments, FreedObjects& freed,
           const CombinerOptions& combiner);
  ~Sections();

  // EUSERS: as many threads as there are slots have one.
  Result<Slot*> take_slot();
  // What the slot's thread stored outside of sections is durable.
  Status flush(Slot& slot);
  // The same, of a slot without an open section; it can be another's.
  Status give_back(Slot& slot);

  // All that threads stored outside of sections is durable. EBUSY: one is open. Nobody uses a slot meanwhile.
  Status close();

  Status begin(Slot& slot);
  // The slot's open section ends: all that it stored is durable, or goes with what it depends on.
  Status end(Slot& slot, uint64_t stamp);
  bool is_history(const Dependence& on) const;
  // Sections that are complete and wait for others.
  uint32_t pending() const { return pending_count_.load_seq_cst(); }

  Status persist() override;
  Status failure() const;
  Counts counts() const;
  // The lines that each thread's cache holds at most, by slot; 0 where there was none.
  std::vector<uint32_t> cache_sizes() const;
  uint32_t profiled_size() const;

 private:
  struct Pending {
    Slot* slot;
    uint64_t section;
    std::vector<Dependence> depends_on;
    std::vector<uint64_t> freed;
    bool goes = true;
  };
  Status finish(Slot& slot);
  Status wait(Slot& slot, uint64_t stamp);
  Status settle_pending();
  void find_what_goes();
  bool goes(const Dependence& on) const;
  Status fail(Status status);

  const RegionView& region_;
  Persistence& domain_;
  SegmentSource& segments_;
  FreedObjects& freed_;
  const CombinerOptions combiner_;
  const std::unique_ptr<Persistence::Writer> writer_;  // pending_mutex_
  mutable std::mutex slots_mutex_;
  std::vector<std::unique_ptr<Slot>> owned_;  // slots_mutex_
  std::vector<bool> taken_;                   // slots_mutex_
  std::unique_ptr<Atomic<Slot*>[]> slots_;
  const uint32_t slot_count_;
  std::mutex pending_mutex_;
  std::vector<Pending> pending_;  // of one slot in the order of their sections
  Atomic<uint32_t> pending_count_{0};
  Atomic<uint32_t> failed_{0};
  Status failure_;  // slots_mutex_
};

}  // namespace spw::durable
