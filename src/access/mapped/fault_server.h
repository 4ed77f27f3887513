// Serves the page faults of managed space: takes events from userfaultfd and brings the blocks in.
//
// Two kinds of threads. *Pollers* take events in batches. All that a batch misses is begun first, then the reads go to
// the kernel together, and each fault is served by the same thread when its read is done: no event is handed over, and
// as many reads are in flight as FaultReads has room for. What would have to wait for something else (a block that
// somebody else reads, a frame) goes into a queue to the *fillers*, who may sleep, and take one event at a time:
// nothing waits behind what its filler sleeps for. A thread that faults alone, time after time, is asleep until it is
// served, so its poller may sleep for its read, too.
//
// One poller at a time *leads*: it alone sleeps at the descriptor of userfaultfd, so an event wakes one thread. Another
// is called when a batch was full or its poller has no room left, since events may wait in the kernel then. Who finds
// none, and may not lead, sleeps at its own reads or, without any, until it is called.
//
// While the leader is awake nobody sleeps at the descriptor. Should it be held up then (a lock, a long read, no
// processor), the *deputy* takes events: one of the pollers that sleep without reads, which looks every kDeputyNs, and
// leads if there is no leader and no poller has taken a turn since its last look. So an event waits for two looks at
// most while one poller is not held up. When a leader has slept for kQuietLooks of them the deputy rests, until the
// leader wakes: a program that does not fault wakes nobody.
// All threads are started at once, before there is managed memory: libc makes later ones on stacks of threads that have
// ended, whose bookkeeping may be managed by then, and a thread that serves faults must not fault.
// Eviction is the partition owners' (cache/partition); cache::PageCleaner runs it ahead of need.
//
// Threads: start() and stop() by one. None of ours ever touches managed memory. Lifetime:
// stopped before what it uses goes; stop() waits until all that was taken is served:
// reads that are in flight, and what is queued. Fillers end after the pollers, therefore.
// Invariants: events queued + kPollBatch for each poller with a batch in hand <= kQueueMax, so a poller never has to
//               keep what it cannot begin; other events wait in the kernel
//             a poller sleeps at the descriptor, at its reads or as the deputy,
//                 or it is awake and will: of those that are not held up
// Limits: a poller has no more in flight than its FaultReads has room for, and takes kPollBatch events at a time.
// (UMap, section 3.1: decoupled queues, pooled work of all regions, batches when workers starve.)
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/atomic.h"
#include "platform/thread.h"
#include "platform/userfault.h"
#include "platform/wake_fd.h"

namespace spw::access {

// The faults that one poller has begun to serve. Its thread's alone. Nothing here waits for other threads, which may
// have faulted and wait for the poller; what would have to is left to a filler.
class FaultReads {
 public:
  virtual ~FaultReads() = default;
  // How many more events may be given to begin().
  virtual size_t room() const = 0;
  virtual size_t in_flight() const = 0;
  // Serves the event, or begins to read for it. False: who serves it has to wait.
  virtual bool begin(const platform::FaultEvent& event) = 0;
  // What was begun is under way.
  virtual void start() = 0;
  // Serves those whose reads are done; how many.
  virtual size_t end_some() = 0;
  // How to sleep until there are some: adds descriptors to `fds`, of
  // which there are fewer than platform::kWaitedMax; for so long at most.
  virtual uint64_t sleep(std::vector<int>* fds) = 0;
  // Serves the event to its end, while nothing else is in flight.
  // Sleeps for a read of its own, at most. False: as begin().
  virtual bool serve(const platform::FaultEvent& event) = 0;
};

class FaultServer {
 public:
  struct Options {
    unsigned pollers = 2;  // fewer have no deputy
    unsigned fillers = 16;
  };
  // Called by a filler for each event that FaultReads::begin() and serve() have not taken.
  using Serve = std::function<void(const platform::FaultEvent& event)>;
  // Called once for each poller.
  using MakeReads = std::function<std::unique_ptr<FaultReads>()>;

  FaultServer(const platform::UserFault& faults, const Options& options, Serve serve, MakeReads make_reads);
  ~FaultServer() { stop(); }

  Status start();
  void stop();

 private:
  static constexpr size_t kPollBatch = 16;
  static constexpr size_t kQueueMax = 64 * kPollBatch;
  // A thread that faulted this many times in a row is the only one.
  static constexpr unsigned kAloneAfter = 8;
  static constexpr uint64_t kDeputyNs = 5'000'000;
  static constexpr unsigned kQuietLooks = 20;

  struct Poller {
    std::unique_ptr<FaultReads> reads;
    std::vector<int> fds;  // to sleep at, for so long at most: its reads and, for a leader, the events
    uint64_t timeout_ns = 0;
    uint32_t last_thread = 0;
    unsigned in_a_row = 0;
    platform::FaultEvent left[kPollBatch];  // of the batch in hand: for the fillers
    size_t left_count = 0;
  };

  void poll(Poller& poller);
  bool take_batch(Poller& poller, size_t room);
  bool is_alone(Poller& poller, std::span<const platform::FaultEvent> batch);
  bool has_place() const { return queued_ + (taking_ + 1) * kPollBatch <= kQueueMax; }
  size_t room_for(const Poller& poller) const;
  void hand_on(Poller& poller);
  void call_poller();
  void find_sleep(Poller& poller);
  void sleep(Poller& poller, std::unique_lock<std::mutex>& lock);
  void lead(Poller& poller, std::unique_lock<std::mutex>& lock);
  bool may_go(const Poller& poller, uint64_t seen_turns) const;
  void await_call(Poller& poller, std::unique_lock<std::mutex>& lock);
  void look_later(std::unique_lock<std::mutex>& lock, uint64_t* seen_turns, unsigned* quiet_looks);
  void end_all(Poller& poller);
  void fill();
  void serve_one(std::unique_lock<std::mutex>& lock);

  const platform::UserFault& faults_;
  const Options options_;
  const Serve serve_;
  const MakeReads make_reads_;
  platform::WakeFd stop_event_;

  std::vector<std::unique_ptr<Poller>> pollers_;
  std::vector<platform::Thread> threads_;
  Atomic<uint32_t> uncalled_{0};  // pollers that sleep until they are called; changes under the mutex

  std::mutex mutex_;  // guards what follows
  std::condition_variable idle_fillers_, idle_pollers_;
  platform::FaultEvent queue_[kQueueMax];  // a ring
  size_t first_ = 0;
  size_t queued_ = 0;
  unsigned polling_ = 0;  // pollers that have not ended
  unsigned taking_ = 0;   // pollers with a batch in hand
  unsigned idle_ = 0;     // fillers
  uint64_t turns_ = 0;    // that pollers have taken
  bool is_called_ = false;
  bool is_starved_ = false;  // a poller sleeps because there was no place for a batch
  bool has_leader_ = false;  // one sleeps at the descriptor
  bool has_deputy_ = false;
  bool deputy_rests_ = false;
  bool stopping_ = false;
};

}  // namespace spw::access
