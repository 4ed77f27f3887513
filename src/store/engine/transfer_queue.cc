#include "store/engine/transfer_queue.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "platform/time.h"

namespace spw::store {

TransferQueue::TransferQueue(std::unique_ptr<IoEngine> engine, const Target& target, size_t depth)
    : engine_(std::move(engine)), target_(target), slots_(depth) {
  free_slots_.reserve(depth);
  for (size_t i = depth; i > 0; --i) free_slots_.push_back(static_cast<uint32_t>(i - 1));
  batch_.reserve(depth);
  ready_.reserve(depth);
  delayed_.reserve(depth);
}

// Buffers must not be written to after the queue is gone, so it waits for what is still at the engine.
TransferQueue::~TransferQueue() {
  while (at_engine_ > 0) {
    engine_->wait(UINT64_MAX);
    advance_harvested(SIZE_MAX);
  }
}

size_t TransferQueue::enqueue(std::span<Request* const> requests) {
  size_t taken = 0;
  for (; taken < requests.size() && in_flight_ < slots_.size(); ++taken) {
    uint32_t index = free_slots_.back();
    free_slots_.pop_back();
    ++in_flight_;
    Slot& slot = slots_[index];
    slot.request = requests[taken];
    slot.progress.begin(*slot.request, target_);
    uint64_t delay_ns = slot.progress.delay_ns();
    slot.due_ns = delay_ns == 0 ? 0 : platform::deadline_after(platform::monotonic_ns(), delay_ns);
    step(index);
  }
  bool completed_at_once = ready_.size() + delayed_.size() > 0;
  if (!batch_.empty()) engine_->issue(batch_);
  batch_.clear();
  publish();
  if (completed_at_once) engine_->wake();  // a waiter has looked before there was something
  return taken;
}

// Puts the next step of a slot's request into batch_, or completes it.
void TransferQueue::step(uint32_t index) {
  RawIo io;
  if (!slots_[index].progress.next(&io)) return complete(index);
  io.slot = index;
  batch_.push_back(io);
  ++at_engine_;
}

void TransferQueue::complete(uint32_t index) {
  Slot& slot = slots_[index];
  Completion completion{slot.request, slot.progress.error()};
  if (slot.due_ns == 0) {
    ready_.push_back(completion);
  } else {
    delayed_.push_back({slot.due_ns, completion});
  }
  free_slots_.push_back(index);
}

// Takes up to `limit` results and issues the steps that follow them. No more than the caller can pass on: what stays at
// the engine keeps its wait() awake.
void TransferQueue::advance_harvested(size_t limit) {
  constexpr size_t kResultsAtOnce = 64;
  std::array<RawResult, kResultsAtOnce> results;
  size_t count = engine_->harvest(std::span(results).first(std::min(limit, kResultsAtOnce)));
  at_engine_ -= count;
  for (size_t i = 0; i < count; ++i) {
    slots_[results[i].slot].progress.finish_step(results[i]);
    step(results[i].slot);
  }
  if (batch_.empty()) return;
  engine_->issue(batch_);
  batch_.clear();
  engine_->kick();
}

void TransferQueue::move_due_to_ready() {
  uint64_t now_ns = platform::monotonic_ns();
  std::erase_if(delayed_, [&](const Delayed& delayed) {
    if (delayed.due_ns > now_ns) return false;
    ready_.push_back(delayed.completion);
    return true;
  });
}

size_t TransferQueue::reap(std::span<Completion> out) {
  // Even if nothing is at the engine: what woke the waiter may have come after the last result was harvested.
  if (ready_.size() < out.size()) advance_harvested(out.size() - ready_.size());
  if (!delayed_.empty()) move_due_to_ready();
  size_t taken = std::min(out.size(), ready_.size());
  std::copy_n(ready_.begin(), taken, out.begin());
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(taken));
  in_flight_ -= taken;
  publish();
  return taken;
}

// Tells wait() what only this thread sees.
void TransferQueue::publish() {
  uint64_t next_due_ns = UINT64_MAX;
  for (const Delayed& delayed : delayed_) next_due_ns = std::min(next_due_ns, delayed.due_ns);
  next_due_ns_.store_release(next_due_ns);
  ready_count_.store_release(ready_.size());
}

void TransferQueue::wait(uint64_t timeout_ns) {
  // Pair with publish(): who sees a completion counted may go and reap it.
  if (ready_count_.load_acquire() > 0) return;
  engine_->wait(std::min(timeout_ns, until_due_ns()));
}

std::optional<Sleep> TransferQueue::sleep() {
  std::optional<Sleep> sleep = engine_->sleep();
  if (sleep) sleep->timeout_ns = ready_.empty() ? std::min(sleep->timeout_ns, until_due_ns()) : 0;
  return sleep;
}

// Until the next delayed completion may be reaped.
uint64_t TransferQueue::until_due_ns() const {
  const uint64_t due_ns = next_due_ns_.load_acquire();
  if (due_ns == UINT64_MAX) return UINT64_MAX;
  const uint64_t now_ns = platform::monotonic_ns();
  return due_ns > now_ns ? due_ns - now_ns : 0;
}

}  // namespace spw::store
