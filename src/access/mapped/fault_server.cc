#include "access/mapped/fault_server.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace spw::access {

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
  polling_ = options_.pollers;
  for (unsigned i = 0; i < options_.pollers; ++i) {
    pollers_.push_back(std::make_unique<Poller>());
    Poller& poller = *pollers_.back();
    poller.reads = make_reads_();
    poller.fds.reserve(platform::kWaitedMax);
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
    idle_pollers_.notify_all();
  }
  for (platform::Thread& thread : threads_) thread.join();
}

// ---- Pollers ----

void FaultServer::poll(Poller& poller) {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    ++turns_;
    const size_t room = room_for(poller);
    if (room > 0) ++taking_;
    lock.unlock();
    const bool may_be_more = room > 0 && take_batch(poller, room);
    poller.reads->start();
    if (room > 0) {
      lock.lock();
      --taking_;
      hand_on(poller);
      lock.unlock();
    }
    const bool have_ended = poller.reads->end_some() > 1;
    const bool is_idle = !may_be_more && !have_ended;
    if (is_idle) find_sleep(poller);
    lock.lock();
    if (is_idle) sleep(poller, lock);
  }
  lock.unlock();
  end_all(poller);
  lock.lock();
  if (--polling_ == 0) idle_fillers_.notify_all();
}

// For events that the poller may take now: none while there is no place for what it cannot begin.
size_t FaultServer::room_for(const Poller& poller) const {
  return has_place() ? std::min(poller.reads->room(), kPollBatch) : 0;
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
  for (size_t i = 0; i < poller.left_count; ++i) queue_[(first_ + queued_++) % kQueueMax] = poller.left[i];
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

// How to sleep until reads of its own are done.
void FaultServer::find_sleep(Poller& poller) {
  poller.fds.assign({stop_event_.fd()});
  poller.timeout_ns = poller.reads->sleep(&poller.fds);
}

// Until there may be events, reads are done, or another poller calls. Who may take none leaves them to others.
void FaultServer::sleep(Poller& poller, std::unique_lock<std::mutex>& lock) {
  const bool has_reads = poller.reads->in_flight() > 0;
  if (!has_reads) await_call(poller, lock);
  const bool may_take = room_for(poller) > 0;
  if (may_take && std::exchange(is_called_, false)) return;
  if (may_take && !has_leader_) return lead(poller, lock);
  if (!has_reads) return;
  lock.unlock();
  platform::wait_readable(poller.fds, poller.timeout_ns);
  lock.lock();
}

void FaultServer::lead(Poller& poller, std::unique_lock<std::mutex>& lock) {
  has_leader_ = true;
  lock.unlock();
  poller.fds.push_back(faults_.fd());
  platform::wait_readable(poller.fds, poller.timeout_ns);
  lock.lock();
  has_leader_ = false;
  ++turns_;
  if (std::exchange(deputy_rests_, false)) idle_pollers_.notify_all();
}

// Who has been called, or finds that nobody sees to events: no leader, and no poller that has taken a turn since.
bool FaultServer::may_go(const Poller& poller, uint64_t seen_turns) const {
  return room_for(poller) > 0 && (is_called_ || (!has_leader_ && turns_ == seen_turns));
}

// Of a poller without reads. The first is the deputy, and leaves that to another one when it goes.
void FaultServer::await_call(Poller& poller, std::unique_lock<std::mutex>& lock) {
  uncalled_.fetch_add_relaxed(1);
  uint64_t seen_turns = turns_;
  unsigned quiet_looks = 0;
  bool is_deputy = false;
  while (!stopping_ && !may_go(poller, seen_turns)) {
    is_starved_ = is_starved_ || room_for(poller) == 0;
    if (!has_deputy_) has_deputy_ = is_deputy = true;
    if (is_deputy)
      look_later(lock, &seen_turns, &quiet_looks);
    else
      idle_pollers_.wait(lock);
  }
  uncalled_.fetch_sub_relaxed(1);
  if (!is_deputy) return;
  has_deputy_ = false;
  idle_pollers_.notify_one();
}

// The deputy's sleep until its next look.
void FaultServer::look_later(std::unique_lock<std::mutex>& lock, uint64_t* seen_turns,
                             unsigned* quiet_looks) {
  *quiet_looks = has_leader_ && turns_ == *seen_turns ? *quiet_looks + 1 : 0;
  *seen_turns = turns_;
  if (*quiet_looks < kQuietLooks) {
    idle_pollers_.wait_for(lock, std::chrono::nanoseconds(kDeputyNs));
    return;
  }
  deputy_rests_ = true;
  idle_pollers_.wait(lock);
  deputy_rests_ = false;
  *quiet_looks = 0;
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

// Until no poller can hand anything on.
void FaultServer::fill() {
  std::unique_lock lock(mutex_);
  while (queued_ > 0 || polling_ > 0) {
    if (queued_ > 0) {
      serve_one(lock);
    } else {
      ++idle_;
      idle_fillers_.wait(lock);
      --idle_;
    }
  }
}

void FaultServer::serve_one(std::unique_lock<std::mutex>& lock) {
  const platform::FaultEvent event = queue_[first_];
  first_ = (first_ + 1) % kQueueMax;
  --queued_;
  if (is_starved_ && has_place()) {
    is_starved_ = false;
    is_called_ = true;
    idle_pollers_.notify_one();
  }
  lock.unlock();
  serve_(event);
  lock.lock();
}

}  // namespace spw::access
