#include "store/engine/thread_engine.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"

namespace spw::store {

void WorkerPool::Tasks::add(const RawIo& io, Mailbox& mailbox) {
  SPW_CHECK(mailbox.free_tasks_ != nullptr);
  WorkerTask* const task = std::exchange(mailbox.free_tasks_, mailbox.free_tasks_->next);
  task->io = io;
  task->next = nullptr;
  (first == nullptr ? first : last->next) = task;
  last = task;
  ++count;
}

WorkerTask WorkerPool::Tasks::take() {
  WorkerTask* const task = std::exchange(first, first->next);
  const WorkerTask taken = *task;
  task->next = std::exchange(task->mailbox->free_tasks_, task);
  --count;
  return taken;
}

WorkerPool::~WorkerPool() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  workers_.clear();  // joins
}

void WorkerPool::start(unsigned workers) {
  {
    std::lock_guard lock(mutex_);
    grows_ = false;
    if (std::exchange(is_started_, true)) return;
  }
  // Without the lock, which whoever serves page faults may need.
  for (unsigned i = 0; i < workers; ++i) {
    auto worker = platform::Thread::start([this] { work(); });
    if (!worker) break;
    std::lock_guard lock(mutex_);
    workers_.push_back(std::move(*worker));
  }
}

void WorkerPool::submit(std::span<const RawIo> ios, Mailbox& mailbox) {
  std::unique_lock lock(mutex_);
  while (grows_ && workers_.size() < std::min<size_t>(kWorkers, tasks_.count + ios.size())) {
    auto worker = platform::Thread::start([this] { work(); });
    if (!worker) break;
    workers_.push_back(std::move(*worker));
  }
  if (workers_.empty()) {
    lock.unlock();
    for (const RawIo& io : ios) mailbox.put({io.slot, run_(io)});
    return;
  }
  for (const RawIo& io : ios) {
    tasks_.add(io, mailbox);
    changed_.notify_one();
  }
}

void WorkerPool::in_child() {
  new (&mutex_) std::mutex;
  new (&changed_) std::condition_variable;
  tasks_ = {};
  new (&workers_) std::vector<platform::Thread>;
  is_started_ = false;
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || tasks_.count > 0; });
    if (tasks_.count == 0) return;
    const WorkerTask task = tasks_.take();
    lock.unlock();
    task.mailbox->put({task.io.slot, run_(task.io)});
    lock.lock();
  }
}

}  // namespace spw::store
