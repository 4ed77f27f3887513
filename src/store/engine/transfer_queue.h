// The IoQueue of every store whose requests are steps for an engine: slots, each with the Progress of one request.
//
// Invariants: in_flight = requests at the engine + ready + delayed completions; each is in one slot until it is reaped
//   or, for ready and delayed ones, in a list.
// Threads: as IoQueue; wait() reads ready_count_ and next_due_ns_ and
// touches the engine's wait() only, kick() the engine's only.
// Limits: `depth` requests in flight; nothing is allocated after the queue is made.
#pragma once

#include <vector>

#include "base/atomic.h"
#include "store/engine/engine.h"
#include "store/engine/progress.h"

namespace spw::store {

class TransferQueue final : public IoQueue {
 public:
  // `target` outlives the queue.
  TransferQueue(std::unique_ptr<IoEngine> engine, const Target& target, size_t depth);
  ~TransferQueue() override;

  size_t enqueue(std::span<Request* const> requests) override;
  void kick() override { engine_->kick(); }
  size_t reap(std::span<Completion> out) override;
  void wait(uint64_t timeout_ns) override;
  void wake() override { engine_->wake(); }
  std::optional<Sleep> sleep() override;
  size_t in_flight() const override { return in_flight_; }
  size_t depth() const override { return slots_.size(); }

 private:
  struct Slot {
    Request* request = nullptr;
    uint64_t due_ns = 0;  // not to be reaped earlier
    Progress progress;
  };
  struct Delayed {
    uint64_t due_ns = 0;
    Completion completion;
  };

  void step(uint32_t slot);
  void complete(uint32_t slot);
  void advance_harvested(size_t limit);
  void move_due_to_ready();
  void publish();
  uint64_t until_due_ns() const;

  std::unique_ptr<IoEngine> engine_;
  const Target& target_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;
  std::vector<RawIo> batch_;       // steps to issue next
  std::vector<Completion> ready_;  // to be reaped
  std::vector<Delayed> delayed_;   // over, but delayed by a fault
  size_t in_flight_ = 0;
  size_t at_engine_ = 0;
  Atomic<size_t> ready_count_{0};
  Atomic<uint64_t> next_due_ns_{UINT64_MAX};
};

}  // namespace spw::store
