// The engine of a store over several members whose queues can all be slept at: it has a queue of each member's to
// itself, and no other thread is between it and them (PartedEngine hands each part to its member's thread, which is a
// switch of threads each way).
//
// Invariants: parts of a step = those at the members' queues + those in waiting_ + those that have ended
//   there are results, or something is due => has_results_ or due_ns_ says so, or a member's descriptor is readable
// Threads: as every engine. issue() and harvest() touch the queues; wait() only what is atomic, the descriptors, and
//   kick(). Lifetime: as every engine; the store outlives it.
// Limits: `depth` requests at each member's queue, the others wait. A wait() ends after kWaitMaxNs: a queue for whose
//   submissions the kernel has no memory tells only who waits at that queue.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "base/atomic.h"
#include "platform/wake_fd.h"
#include "store/striped/parted.h"

namespace spw::store {

class DirectParts final : public IoEngine {
 public:
  static constexpr uint64_t kWaitMaxNs = 100'000'000;

  // nullptr where a member's queue cannot be slept at by its descriptor.
  static Result<std::unique_ptr<IoEngine>> create(PartedStore& store, const std::vector<Store*>& members,
                                                  size_t depth);

  void issue(std::span<const RawIo> ios) override;
  void kick() override;
  size_t harvest(std::span<RawResult> out) override;
  void wait(uint64_t timeout_ns) override;
  void wake() override { wake_.wake(); }

 private:
  DirectParts(PartedStore& store, size_t depth) : store_(store), steps_(depth) {}
  void start(PartedStep& step);
  void end(PartedStep& step, int error);
  bool submit_waiting();
  void reap(IoQueue& queue);
  void publish();

  PartedStore& store_;
  std::vector<PartedStep> steps_;  // by slot
  std::vector<std::unique_ptr<IoQueue>> queues_;
  std::vector<int> fds_;                                          // of the queues, and of wake_
  std::vector<std::deque<std::unique_ptr<StripePart>>> waiting_;  // by member
  std::vector<RawResult> results_;
  platform::WakeFd wake_;
  Atomic<bool> has_results_{false};
  Atomic<uint64_t> due_ns_{UINT64_MAX};
};

}  // namespace spw::store
