#include "front/mapped/fault_server.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace spw::front {

FaultServer::FaultServer(const platform::UserFault& faults, const Options& options, Serve serve,
                         MakeReads make_reads)
    : faults_(faults), options_(options), serve_(std::move(serve)), make_reads_(std::move(make_reads)) {}

Status FaultServer::start() {
  auto event = platform::WakeFd::create();
  if (!event) return event.status();
  stop_event_ = std::move(*event);
  const auto start_thread = [this](std::function<void()> body) {
    auto thread = platform::Thread::start(std::move(body));
    if (thread) threads_.push_back(std::move(*thread));
    return thread.status();
  };
  for (unsigned i = 0; i < options_.pollers; ++i) {
    pollers_.push_back(std::make_unique<Poller>());
    Poller& poller = *pollers_.back();
    poller.reads = make_reads_();
    if (Status status = start_thread([this, &poller] { poll(poller); }); !status) return status;
  }
  for (unsigned i = 0; i < options_.fillers; ++i)
    if (Status status = start_thread([this] { fill(); }); !status) return status;
  return {};
}

void FaultServer::stop() {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || threads_.empty()) return;
    stopping_ = true;
    stop_event_.wake();
    idle_fillers_.notify_all();
    idle_pollers_.notify_all();
  }
  for (platform::Thread& thread : threads_) thread.join();
}

// ---- Pollers ----

void FaultServer::poll(Poller& poller) {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const size_t room = room_for(poller);
    if (room > 0) ++taking_;
    lock.unlock();
    const bool may_be_more = room > 0 && take_batch(poller, room);
    poller.reads->start();
    const bool have_ended = poller.reads->end_some() > 1;
    lock.lock();
    if (room > 0) {
      --taking_;
      hand_on(poller);
    }
    if (!may_be_more && !have_ended) sleep(poller, lock);
  }
  lock.unlock();
  end_all(poller);
}

// For events that the poller may take now: none while there is no place for what it cannot begin.
size_t FaultServer::room_for(const Poller& poller) const {
  return queued_ + (taking_ + 1) * kPollBatch <= kQueueMax ? std::min(poller.reads->room(), kPollBatch) : 0;
}

// Whether more are likely to be there already: several have come.
bool FaultServer::take_batch(Poller& poller, size_t room) {
  platform::FaultEvent events[kPollBatch];
  const size_t count = faults_.take_events({events, room});
  if (count == room) call_poller();
  const bool is_one = is_alone(poller, {events, count});
  for (size_t i = 0; i < count; ++i) {
    const bool is_taken = is_one ? poller.reads->serve(events[i]) : poller.reads->begin(events[i]);
    if (!is_taken) poller.left[poller.left_count++] = events[i];
  }
  return count > 1;
}

// The batch's thread is: no other one has faulted between two of its faults.
bool FaultServer::is_alone(Poller& poller, std::span<const platform::FaultEvent> batch) {
  if (batch.empty()) return false;
  const bool is_same = batch.size() == 1 && batch[0].thread == poller.last_thread;
  poller.in_a_row = is_same && poller.reads->in_flight() == 0 ? poller.in_a_row + 1 : 0;
  poller.last_thread = batch.back().thread;
  return poller.in_a_row >= kAloneAfter;
}

void FaultServer::hand_on(Poller& poller) {
  SPW_CHECK(queued_ + poller.left_count <= kQueueMax);
  std::copy_n(poller.left, poller.left_count, queue_ + queued_);
  queued_ += poller.left_count;
  const size_t wanted = std::min<size_t>(poller.left_count, idle_);
  for (size_t called = 0; called < wanted; ++called) idle_fillers_.notify_one();
  poller.left_count = 0;
}

void FaultServer::call_poller() {
  if (uncalled_.load_relaxed() == 0) return;  // those who do not sleep will look by themselves
  std::lock_guard lock(mutex_);
  is_called_ = true;
  idle_pollers_.notify_one();
}

// Until there may be events, reads are done, or another poller calls. Who may take none leaves them to others.
void FaultServer::sleep(Poller& poller, std::unique_lock<std::mutex>& lock) {
  const bool has_reads = poller.reads->in_flight() > 0;
  while (!stopping_ && !is_called_ && !has_reads && (has_leader_ || room_for(poller) == 0)) {
    uncalled_.fetch_add_relaxed(1);
    idle_pollers_.wait(lock);
    uncalled_.fetch_sub_relaxed(1);
  }
  const bool may_take = room_for(poller) > 0;
  if (may_take && std::exchange(is_called_, false)) return;
  const bool leads = may_take && !has_leader_;
  if (!leads && !has_reads) return;
  has_leader_ = has_leader_ || leads;
  lock.unlock();
  sleep_at(poller, leads);
  lock.lock();
  if (leads) has_leader_ = false;
}

void FaultServer::sleep_at(Poller& poller, bool leads) {
  poller.fds.assign({stop_event_.fd()});
  if (leads) poller.fds.push_back(faults_.fd());
  const uint64_t timeout_ns = poller.reads->sleep(&poller.fds);
  platform::wait_readable(poller.fds, timeout_ns);
}

void FaultServer::end_all(Poller& poller) {
  while (poller.reads->in_flight() > 0) {
    poller.reads->start();
    if (poller.reads->end_some() > 0) continue;
    poller.fds.clear();
    const uint64_t timeout_ns = poller.reads->sleep(&poller.fds);
    platform::wait_readable(poller.fds, timeout_ns);
  }
}

// ---- Fillers ----

void FaultServer::fill() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (queued_ > 0) {
      serve_some(lock);
    } else {
      ++idle_;
      idle_fillers_.wait(lock);
      --idle_;
    }
  }
}

void FaultServer::serve_some(std::unique_lock<std::mutex>& lock) {
  platform::FaultEvent mine[kPollBatch];
  const size_t share = std::clamp<size_t>(queued_ / (idle_ + 1), 1, kPollBatch);
  const size_t count = std::min(share, queued_);
  std::copy(queue_, queue_ + count, mine);
  std::copy(queue_ + count, queue_ + queued_, queue_);
  queued_ -= count;
  if (uncalled_.load_relaxed() > 0 && !has_leader_)
    idle_pollers_.notify_one();  // there may have been no place for its batch
  lock.unlock();
  for (size_t i = 0; i < count; ++i) serve_(mine[i]);
  lock.lock();
}

}  // namespace spw::front
