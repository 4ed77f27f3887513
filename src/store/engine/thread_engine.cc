#include "store/engine/thread_engine.h"

#include <algorithm>
#include <new>
#include <utility>

namespace spw::store {

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
  while (grows_ && workers_.size() < std::min<size_t>(kWorkers, tasks_.size() + ios.size())) {
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
    tasks_.push_back({io, &mailbox});
    changed_.notify_one();
  }
}

void WorkerPool::in_child() {
  new (&mutex_) std::mutex;
  new (&changed_) std::condition_variable;
  new (&tasks_) std::deque<Task>;
  new (&workers_) std::vector<platform::Thread>;
  is_started_ = false;
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = tasks_.front();
    tasks_.pop_front();
    lock.unlock();
    task.mailbox->put({task.io.slot, run_(task.io)});
    lock.lock();
  }
}

}  // namespace spw::store
