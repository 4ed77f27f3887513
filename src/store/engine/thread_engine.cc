#include "store/engine/thread_engine.h"

#include <csignal>

namespace spw::store {

WorkerPool::~WorkerPool() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::run(std::span<const RawIo> ios, Mailbox& mailbox) {
  std::lock_guard lock(mutex_);
  for (const RawIo& io : ios) tasks_.push_back({io, &mailbox});
  // The program's signals are not for these threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (workers_.size() < kWorkers && workers_.size() < tasks_.size())
    workers_.emplace_back([this] { work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  changed_.notify_all();
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = tasks_.front();
    tasks_.pop_front();
    lock.unlock();
    task.mailbox->put({task.io.slot, run_io(task.io)});
    lock.lock();
  }
}

}  // namespace spw::store
