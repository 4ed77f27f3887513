// Dedicated servers: threads that own partitions and do nothing else. For machines with cores to spare.
//
// Server s owns the partitions p with p mod servers = s. Clients post
// requests to it in one word and sleep on their request:
//
//      63                                 1      0
//     +------------------------------------+--------+
//     | last posted request, or none       | asleep |      asleep is set only while the list is empty
//     +------------------------------------+--------+
//
//   from            to                 who     operation and order
//   list            me -> list         client  CAS release: pairs with take_all
//   asleep          me                 client  CAS release; this client then wakes the server
//   list            none               server  exchange acquire (take_all)
//   none            asleep             server  CAS acq_rel; fails if a request was posted, which is then served
//   asleep          none               server  CAS: it woke by itself, a transfer has finished
//
// A demand read is the server's too: it goes into the partition's queue and the client
// is woken once, when the block is there. A server without work spins for kIdleSpinsMax,
// then sleeps: in the I/O queue while transfers are in flight, else on a futex.
// Threads: execute() by any; everything in Server but `posted` and
// `wakeups` is the server's own. Signals are blocked there.
// Lifetime: the threads run from start() to destruction; no client is inside execute() then.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/atomic.h"
#include "cache/delegation/delegation.h"
#include "platform/thread.h"

namespace spw::cache {

class Dedicated final : public Delegate {
 public:
  Dedicated(std::span<const std::unique_ptr<Partition>> partitions, unsigned servers);
  ~Dedicated() override;
  // Second step of construction; nothing is executed before.
  Status start();
  void execute(Partition& partition, Request& request) override;
  // Servers are always waited for.
  bool try_execute(Partition&, Request&) override { return false; }
  void await_progress(Partition& partition, const Request& request, uint64_t timeout_ns) override;
  bool owners_run_by_themselves() const override { return true; }

 private:
  struct alignas(64) Server {
    Atomic<uintptr_t> posted;
    alignas(64) Atomic<uint32_t> wakeups;
    Atomic<bool> stop;
    std::mutex sleep_mutex;               // of sleeps_in
    store::IoQueue* sleeps_in = nullptr;  // set while the server sleeps in a queue; nullptr: on `wakeups`
    std::vector<Partition*> partitions;
    platform::Thread thread;
  };

  static void run(Server& server);
  static bool serve_posted(Server& server);
  static bool reap_all(Server& server);
  static void hand_back_late(Partition& partition);
  static void sleep(Server& server);
  static void wake(Server& server);

  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace spw::cache
