#include "store/engine/thread_engine.h"

#include <algorithm>
#include <new>

namespace spw::store {

WorkerPool::~WorkerPool() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  workers_.clear();  // joins
}

void WorkerPool::start_up_to(size_t workers) {
  while (workers_.size() < workers) {
    auto worker = platform::Thread::start([this] { work(); });
    if (!worker) break;
    workers_.push_back(std::move(*worker));
  }
}

void WorkerPool::start(unsigned workers) {
  std::lock_guard lock(mutex_);
  grows_ = false;
  if (workers_.empty()) start_up_to(workers);
}

void WorkerPool::submit(std::span<const RawIo> ios, Mailbox& mailbox) {
  std::lock_guard lock(mutex_);
  if (grows_) start_up_to(std::min<size_t>(kWorkers, tasks_.size() + ios.size()));
  if (workers_.empty()) {
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
