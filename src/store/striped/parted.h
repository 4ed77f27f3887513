// Steps that are done in parts, each by a member: what stores over several members have in common.
//
// A store deals a step out (PartedStore::deal), each part goes to its member, and whoever ends the last one ends the
// step: asks the store what comes of it (end_step), and puts the result into the queue's mailbox or deals it out again.
//
// Threads: a step is one thread's at a time: of who issues it until its parts are under way, then of whoever ends the
// last of them. Lifetime: the step and what its RawIo points to stay until its result has been taken; the store
// outlives all. Limits: kDealsMax deals of a step.
#pragma once

#include <memory>
#include <vector>

#include "base/atomic.h"
#include "store/engine/mailbox.h"
#include "store/striped/stripe_member.h"

namespace spw::store {

class PartedStore;

inline constexpr unsigned kDealsMax = 17;
// Of PartedStore::end_step(): no error, but another attempt.
inline constexpr int kDealAgain = -1;

struct PartedStep {
  PartedStore* store = nullptr;
  Mailbox* mailbox = nullptr;
  RawIo io;
  int64_t bytes = 0;  // what it has moved when all parts ended well
  unsigned deals = 0;
  Atomic<size_t> parts_left{0};
  Atomic<int> error{0};  // of one of the parts that failed
  // The store's own, from deal() to end_step(). Empty in between.
  std::vector<uint64_t> held;
  std::vector<uint64_t> freed;
};

using Parts = std::vector<std::unique_ptr<StripePart>>;

class PartedStore {
 public:
  // Adds step.io's parts to `parts`, maybe none, and says in step.bytes what they come to. 0, or a positive errno.
  virtual int deal(PartedStep& step, Parts& parts) = 0;
  // It is about to be given to a queue of its member's.
  virtual void begin_part(StripePart&) {}
  // To its member's thread.
  virtual void submit(std::unique_ptr<StripePart> part) = 0;
  // Done before it returns, by the calling thread. A positive errno or 0, as end_part() has it.
  virtual int transfer_part(StripePart& part) = 0;
  // The member has ended it with `error`: what that comes to.
  virtual int end_part(StripePart& part, int error) = 0;
  // After all parts, or after a deal() that failed: the step's error, 0 or kDealAgain.
  virtual int end_step(PartedStep& step, int error) = 0;

 protected:
  ~PartedStore() = default;
};

class PartedEngine final : public IoEngine {
 public:
  PartedEngine(size_t depth, PartedStore& store);
  void issue(std::span<const RawIo> ios) override;
  size_t harvest(std::span<RawResult> out) override { return mailbox_.take(out); }
  void wait(uint64_t timeout_ns) override { mailbox_.wait(timeout_ns); }
  void wake() override { mailbox_.wake(); }

 private:
  PartedStore& store_;
  Mailbox mailbox_;
  std::vector<PartedStep> steps_;  // by slot
};

// Does a step in the calling thread, or, when it has several parts, waits for the members' threads.
RawResult run_parted(PartedStore& store, const RawIo& io);

std::unique_ptr<StripePart> new_part(Op op, uint64_t member, uint64_t offset_bytes);

}  // namespace spw::store
