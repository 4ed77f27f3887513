// The thread engine: a store's few worker threads do the steps with plain system calls. Works everywhere.
//
// Threads: as every engine. A WorkerPool is shared by all queues of a store, or of all stores (engine_workers()); its
// threads start with the first step, or by start().
// Lifetime: the pool outlives its engines, an engine the steps it was given.
// Limits: kWorkers steps of a pool run at a time; a mailbox has room for as many steps that wait as for results.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "platform/thread.h"
#include "store/engine/mailbox.h"

namespace spw::store {

inline constexpr unsigned kWorkers = 16;

class WorkerPool {
 public:
  // `run`: does one step. Called by several threads at a time. `grows`: starts workers by itself; else start() does.
  explicit WorkerPool(std::function<int64_t(const RawIo&)> run = run_io, bool grows = true)
      : run_(std::move(run)), grows_(grows) {}
  ~WorkerPool();
  // Starts so many workers, or as many as can be started, once; and no more will be. A thread is started with locks of
  // libc held: whoever may hold up others that do so themselves, as those that serve page faults may, has the workers
  // started before.
  void start(unsigned workers);
  // Does the steps on some worker, or here when no worker can be started, and puts their results into `mailbox`.
  void submit(std::span<const RawIo> ios, Mailbox& mailbox);
  // In a forked child, by the only thread there is. Its parent's workers are not there, what they were to do is none of
  // its business, and the lock is nobody's: none of that can be taken apart any more, so it is left as it lies.
  void in_child();

 private:
  // First in, first out.
  struct Tasks {
    WorkerTask* first = nullptr;
    WorkerTask* last = nullptr;
    size_t count = 0;

    void add(const RawIo& io, Mailbox& mailbox);
    WorkerTask take();
  };
  void work();

  const std::function<int64_t(const RawIo&)> run_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Tasks tasks_;
  std::vector<platform::Thread> workers_;
  bool ending_ = false;
  bool grows_;
  bool is_started_ = false;
};

using ThreadEngine = MailboxEngine<WorkerPool>;

}  // namespace spw::store
