// Serves the page faults of managed space: takes events from userfaultfd and brings the blocks in.
//
// Stages, one pool of threads (leader and followers): up to `pollers` of them wait for events at a time; whoever got some puts
// them in a queue from which all fill, and somebody else polls. The hand-over is saved where it gains nothing: while one
// thread of the program faults alone it is asleep until it is served, so its poller serves it and polls on. A batch that
// finds few idle workers is taken in pieces.
// All threads are started at once, before there is managed memory: libc makes later ones on stacks of threads that have
// ended, whose bookkeeping may be managed by then, and a thread that serves faults must not fault.
// Eviction, the other half of the paper's stages, is the partition owners' (cache/partition); cache::RoomKeeper runs it ahead of need.
//
// Threads: start() and stop() by one. The workers never touch managed memory. Lifetime: stopped before what it uses goes.
// Invariant: events queued + kPollBatch for each thread that polls <= kQueueMax; a thread polls only where that leaves room for
// its batch, and other events wait in the kernel.
// (UMap, section 3.1: decoupled queues, pooled work of all regions, batches when workers starve.)
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "platform/thread.h"
#include "platform/userfault.h"
#include "platform/wake_fd.h"

namespace spw::front {

class FaultServer {
 public:
  struct Options {
    unsigned pollers = 1;
    unsigned workers = 16;
  };
  // Called for each event, by a worker.
  using Serve = std::function<void(const platform::FaultEvent& event)>;

  FaultServer(const platform::UserFault& faults, const Options& options, Serve serve);
  ~FaultServer() { stop(); }

  Status start();
  void stop();

 private:
  static constexpr size_t kPollBatch = 16;
  static constexpr size_t kQueueMax =
      64 * kPollBatch;  // as many pollers as there may be (--pollers) bring in at once
  // A thread that faulted this many times in a row is the only one.
  static constexpr unsigned kAloneAfter = 8;

  void work();
  bool may_poll() const;
  void poll(std::unique_lock<std::mutex>& lock);
  void serve_some(std::unique_lock<std::mutex>& lock);
  bool is_alone(const platform::FaultEvent& event);
  void call_others(size_t events);

  const platform::UserFault& faults_;
  const Options options_;
  const Serve serve_;
  platform::WakeFd stop_event_;

  std::vector<platform::Thread> threads_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable idle_workers_;
  platform::FaultEvent queue_[kQueueMax];
  size_t queued_ = 0;
  unsigned polling_ = 0;
  unsigned idle_ = 0;
  uint32_t last_thread_ = 0;
  unsigned in_a_row_ = 0;
  bool stopping_ = false;
};

}  // namespace spw::front
