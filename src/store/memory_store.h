// A store in memory, for tests and for measuring what everything but the disk costs: "memory:SIZE".
//
// Sparse: memory is taken as it is written to, and given back by a
// discard. Queues complete every request within submit().
// Threads, lifetime: as every store. Concurrent transfers of the same bytes race, as they would on a disk.
#pragma once

#include "platform/memory.h"
#include "store/engine/progress.h"
#include "store/store.h"

namespace spw::store {

class MemoryStore final : public Store {
 public:
  // `faults`: may be nullptr; outlives the store.
  static Result<std::unique_ptr<MemoryStore>> create(uint64_t size_bytes, FaultPlan* faults = nullptr);

  std::string describe() const override;
  uint64_t size_bytes() const override { return target_.size_bytes; }
  uint64_t alignment_bytes() const override { return target_.alignment_bytes; }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override;
  Status transfer(Request& request) override;
  Status reserve(uint64_t, uint64_t) override { return Status::ok(); }

  // Does one step; what the store's engine calls.
  int64_t run(const RawIo& io);

 private:
  MemoryStore() = default;

  platform::Mapping memory_;  // with room for a last block that begins inside size_bytes()
  Target target_;
};

}  // namespace spw::store
