// Results on their way from the threads that do steps to the queue's thread, with a sleep for who waits for them.
//
// Threads: any, for everything. Limits: `depth` results.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "store/engine/engine.h"

namespace spw::store {

class Mailbox;

// A step that waits for a worker of a WorkerPool, whose lock guards it.
struct WorkerTask {
  RawIo io;
  Mailbox* mailbox = nullptr;
  WorkerTask* next = nullptr;
};

class Mailbox {
 public:
  // `wake_others`: called when something comes, by whoever puts it, for those that sleep elsewhere.
  explicit Mailbox(size_t depth, std::function<void()> wake_others = {});
  void put(RawResult result) { put(std::span(&result, 1)); }
  void put(std::span<const RawResult> results);
  bool is_empty();
  size_t take(std::span<RawResult> out);
  // The next one, when it comes; wakes do not end it.
  RawResult await();
  // As IoQueue's.
  void wait(uint64_t timeout_ns);
  void wake();

 private:
  friend class WorkerPool;

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()> wake_others_;
  std::vector<RawResult> results_;
  bool woken_ = false;
  // The pool's, so that it allocates nothing for a step: who hands one over may be in a page fault in the middle of
  // libc's allocator.
  std::vector<WorkerTask> tasks_;
  WorkerTask* free_tasks_ = nullptr;
};

// The engine of whoever has threads that do steps: Doer::submit(std::span<const RawIo>, Mailbox&) takes them, and puts
// their results into the mailbox.
template <class Doer>
class MailboxEngine final : public IoEngine {
 public:
  // The doer outlives it.
  MailboxEngine(size_t depth, Doer& doer) : doer_(doer), mailbox_(depth) {}
  void issue(std::span<const RawIo> ios) override { doer_.submit(ios, mailbox_); }
  size_t harvest(std::span<RawResult> out) override { return mailbox_.take(out); }
  void wait(uint64_t timeout_ns) override { mailbox_.wait(timeout_ns); }
  void wake() override { mailbox_.wake(); }

 private:
  Doer& doer_;
  Mailbox mailbox_;
};

// One step, done by `doer` before it returns.
template <class Doer>
int64_t done_by(Doer& doer, const RawIo& io) {
  Mailbox mailbox(1);
  doer.submit({&io, 1}, mailbox);
  return mailbox.await().result;
}

}  // namespace spw::store
