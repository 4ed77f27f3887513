// The faults that a poller of the fault server has begun to serve:
// for each the read of its block is in flight (cache/fills.h).
//
// Nobody is waited for but, in serve(), one's own read: who holds a lock, an owner's
// combiner lock, or the memory that is wanted may have faulted itself, and be asleep until
// the poller goes on. What would have to wait is left to who may: engine.serve().
// Invariant: idle places + fills in flight = places.
// Threads: its poller's. Lifetime: its server's. Limits: as many as the cache has room for; other events are left to
// fillers where that is less than kFewPlaces, and wait in the kernel where it is more.
#pragma once

#include <algorithm>
#include <vector>

#include "access/mapped/engine.h"

namespace spw::access {

class MappedEngine::BegunFaults final : public FaultReads {
 public:
  BegunFaults(MappedEngine& engine, cache::Fills& fills);

  // Of large blocks, or of little memory, few reads are in flight, and that is no reason to let events wait.
  size_t room() const override { return std::max(idle_.size(), begun_.size() < kFewPlaces ? kFewPlaces : 0); }
  size_t in_flight() const override { return begun_.size() - idle_.size(); }
  bool begin(const platform::FaultEvent& event) override;
  void start() override { engine_.cache_->start_fills(fills_); }
  size_t end_some() override;
  bool serve(const platform::FaultEvent& event) override;
  uint64_t sleep(std::vector<int>* fds) override { return engine_.cache_->sleep_of_fills(fills_, fds); }

 private:
  static constexpr size_t kEndedAtOnce = 16;
  static constexpr size_t kFewPlaces = 16;

  bool take_on(const platform::FaultEvent& event, cache::Fills* fills);
  bool is_rightful(const platform::FaultEvent& event);
  bool is_begun(BlockId block) const;

  MappedEngine& engine_;
  cache::Fills& fills_;
  std::vector<Wanted> begun_;
  std::vector<size_t> idle_;
};

}  // namespace spw::access
