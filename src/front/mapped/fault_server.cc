#include "front/mapped/fault_server.h"

#include <algorithm>

#include "base/check.h"

namespace spw::front {

FaultServer::FaultServer(const platform::UserFault& faults, const Options& options, Serve serve)
    : faults_(faults), options_(options), serve_(std::move(serve)) {}

Status FaultServer::start() {
  auto event = platform::WakeFd::create();
  if (!event) return event.status();
  stop_event_ = std::move(*event);
  for (unsigned worker = 0; worker < options_.workers; ++worker) {
    auto thread = platform::Thread::start([this] { work(); });
    if (!thread) return thread.status();
    threads_.push_back(std::move(*thread));
  }
  return {};
}

void FaultServer::stop() {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || threads_.empty()) return;
    stopping_ = true;
    stop_event_.wake();
    idle_workers_.notify_all();
  }
  for (platform::Thread& thread : threads_) thread.join();
}

void FaultServer::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (queued_ > 0) {
      serve_some(lock);
    } else if (may_poll()) {
      poll(lock);
    } else {
      ++idle_;
      idle_workers_.wait(lock);
      --idle_;
    }
  }
}

// Where there is no room, others poll already, and whoever returns of them with events calls for help.
bool FaultServer::may_poll() const {
  return polling_ < options_.pollers && queued_ + (polling_ + 1) * kPollBatch <= kQueueMax;
}

void FaultServer::poll(std::unique_lock<std::mutex>& lock) {
  ++polling_;
  platform::FaultEvent events[kPollBatch];
  lock.unlock();
  const size_t count = faults_.wait_events(events, stop_event_.fd());
  lock.lock();
  --polling_;
  SPW_CHECK(queued_ + count <= kQueueMax);
  std::copy(events, events + count, queue_ + queued_);
  queued_ += count;
  const bool alone = count == 1 && queued_ == 1 && is_alone(events[0]);
  if (count > 0 && !alone) call_others(count);
}

// Only while no other thread faults between two of its faults.
bool FaultServer::is_alone(const platform::FaultEvent& event) {
  in_a_row_ = event.thread == last_thread_ ? in_a_row_ + 1 : 0;
  last_thread_ = event.thread;
  return in_a_row_ >= kAloneAfter;
}

// One takes over polling, others what this worker does not serve itself.
void FaultServer::call_others(size_t events) {
  in_a_row_ = events > 1 ? 0 : in_a_row_;
  const size_t wanted = std::min<size_t>(events, options_.workers - 1);
  for (size_t called = 0; called < wanted; ++called) idle_workers_.notify_one();
}

void FaultServer::serve_some(std::unique_lock<std::mutex>& lock) {
  platform::FaultEvent mine[kPollBatch];
  const size_t share = std::clamp<size_t>(queued_ / (idle_ + 1), 1, kPollBatch);
  const size_t count = std::min(share, queued_);
  std::copy(queue_, queue_ + count, mine);
  std::copy(queue_ + count, queue_ + queued_, queue_);
  queued_ -= count;
  lock.unlock();
  for (size_t i = 0; i < count; ++i) serve_(mine[i]);
  lock.lock();
}

}  // namespace spw::front
