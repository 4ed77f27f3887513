// Combining: a client that needs the owner takes the partition's
// combiner lock and is the owner for as long as requests are posted.
//
// Threads: any. A holder does metadata work, and copies what was read to staging: it never sleeps for I/O, and has
// transfers started when it no longer holds the lock (but those that are tried again). So the others' wait is short.
// Limits: a holder serves what others post while it works; each has one request, so at most one a client and round.
#pragma once

#include <memory>

#include "cache/delegation/combiner_lock.h"
#include "cache/delegation/delegation.h"

namespace spw::cache {

class Combining final : public Delegate {
 public:
  explicit Combining(uint32_t partitions);
  void execute(Partition& partition, Request& request) override;
  bool try_execute(Partition& partition, Request& request) override;
  void await_progress(Partition& partition, const Request& request, uint64_t timeout_ns) override;
  bool owners_run_by_themselves() const override { return false; }

 private:
  struct alignas(64) Seat {
    CombinerLock lock;
  };
  void serve_as_holder(Partition& partition, CombinerLock& lock, Request& request);
  bool try_give_up(Partition& partition, CombinerLock& lock, Kicks* kicks);
  void serve_posted(Partition& partition, CombinerLock& lock, Kicks* kicks);

  std::unique_ptr<Seat[]> seats_;
};

}  // namespace spw::cache
