#include "store/striped/stripe_member.h"

#include <algorithm>
#include <new>

#include "platform/time.h"

namespace spw::store {

Result<std::unique_ptr<StripeMember>> StripeMember::start(std::unique_ptr<Store> store) {
  std::unique_ptr<StripeMember> member(new StripeMember);
  member->store_ = std::move(store);
  if (Status status = member->go_on(); !status) return status;
  return member;
}

StripeMember::~StripeMember() { rest(); }

Status StripeMember::go_on() {
  auto queue = store_->open_queue(kMemberDepth);
  if (!queue) return queue.status();
  queue_ = std::move(*queue);
  ending_ = false;
  auto thread = platform::Thread::start([this] { work(); });
  if (!thread) {
    queue_.reset();
    return thread.status();
  }
  thread_ = std::move(*thread);
  return {};
}

void StripeMember::rest() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  if (queue_) queue_->wake();
  thread_.join();
  queue_.reset();
}

void StripeMember::submit(std::unique_ptr<StripePart> part) {
  Status status;
  {
    std::lock_guard lock(mutex_);
    if (!queue_) status = go_on();
    if (status) {
      inbox_.push_back(std::move(part));
      part = nullptr;
    }
  }
  if (part == nullptr) return queue_->wake();
  note_failure();
  part->over(*part, status.error());
}

Status StripeMember::wake_up() {
  std::lock_guard lock(mutex_);
  return queue_ ? Status::ok() : go_on();
}

void StripeMember::in_child() {
  (void)queue_.release();
  new (&waiting_) std::deque<std::unique_ptr<StripePart>>;
  new (&mutex_) std::mutex;
  new (&inbox_) std::vector<std::unique_ptr<StripePart>>;
  new (&thread_) platform::Thread;
  store_->in_child();
}

void StripeMember::work() {
  while (take_inbox()) {
    submit_waiting();
    if (!reap()) queue_->wait(platform::kNoTimeout);
  }
}

// False when the member is no longer needed.
bool StripeMember::take_inbox() {
  std::lock_guard lock(mutex_);
  for (auto& part : inbox_) waiting_.push_back(std::move(part));
  inbox_.clear();
  return !ending_;
}

void StripeMember::submit_waiting() {
  Request* requests[kMemberDepth];
  size_t count = 0;
  const size_t room = queue_->depth() - queue_->in_flight();
  for (; count < std::min(room, waiting_.size()); ++count) {
    waiting_[count]->request.user = waiting_[count].get();
    requests[count] = &waiting_[count]->request;
  }
  if (count == 0) return;
  size_t taken = queue_->submit({requests, count});
  for (; taken > 0; --taken) {
    waiting_.front().release();  // reap() takes it back from its request
    waiting_.pop_front();
  }
}

// False when nothing was there.
bool StripeMember::reap() {
  constexpr size_t kAtOnce = 32;
  Completion done[kAtOnce];
  size_t count = queue_->reap(done);
  for (size_t i = 0; i < count; ++i) {
    std::unique_ptr<StripePart> part(static_cast<StripePart*>(done[i].request->user));
    if (done[i].error != 0) note_failure();
    part->over(*part, done[i].error);
  }
  return count > 0;
}

}  // namespace spw::store
