#include "cache/fills.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace spw::cache {

Fills::Fills(FrameSource& frames, uint64_t block_bytes, uint32_t frame_count, Atomic<uint64_t>& bytes)
    : frames_(frames),
      block_bytes_(block_bytes),
      most_(std::clamp<size_t>(std::min<uint64_t>(kStagingBytesMax / block_bytes, frame_count / kFramesShare),
                               kFillsMin, kFillsMax)),
      bytes_(bytes) {
  bytes_.fetch_add_relaxed(sizeof(*this) + most_ * sizeof(Fill));
  idle_.reserve(most_);
  for (size_t i = 0; i < most_; ++i) {
    fills_[i] = std::make_unique<Fill>();
    idle_.push_back(fills_[i].get());
  }
}

Fills::~Fills() { SPW_CHECK(in_flight() == 0); }

bool Fills::may_begin(const store::Store* store) {
  std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(queues_, store, &Queue::store);
  if (known == queues_.end()) return true;
  if (known->cannot_be) return false;
  if (known->left_to_others == 0) return true;
  --known->left_to_others;
  return false;
}

// Only of a queue that tells how to sleep can a thread wait that waits for other things, too.
Fills::Queue* Fills::queue_of(store::Store& store) {
  auto known = std::ranges::find(queues_, &store, &Queue::store);
  const bool is_new = known == queues_.end();
  if (is_new) {
    queues_.push_back({&store, nullptr});
    known = std::prev(queues_.end());
  }
  if (known->queue) return &*known;
  if (known->cannot_be) return nullptr;
  if (is_new && store.is_short_lived()) {
    known->left_to_others = kMissesBeforeQueue - 1;
    return nullptr;
  }
  auto opened = store.open_queue(most_);
  if (!opened) {
    known->left_to_others = kMissesBeforeRetry;
    return nullptr;
  }
  known->cannot_be = !(*opened)->sleep();
  if (known->cannot_be) return nullptr;
  known->queue = std::move(*opened);
  return &*known;
}

bool Fills::give_staging(Fill& fill) {
  if (fill.staging) return true;
  fill.staging = frames_.take_staging(FrameSource::Staging::kBlock);
  if (fill.staging) bytes_.fetch_add_relaxed(block_bytes_);
  return fill.staging != nullptr;
}

bool Fills::begin(Resident resident, const Backing& backing, Access access, uint64_t asked_ns, uint64_t tag) {
  std::lock_guard lock(mutex_);
  Queue* const queue = queue_of(*backing.store);
  if (!queue) return false;
  Fill& fill = *idle_.back();
  const bool is_staged = frames_.staging_use(resident.block, 1) == FrameSource::StagingUse::kNeeded;
  if (is_staged && !give_staging(fill)) {
    queue->left_to_others = kMissesBeforeRetry;
    return false;
  }
  idle_.pop_back();
  fill.is_staged = is_staged;
  fill.store = backing.store;
  fill.resident = resident;
  fill.access = access;
  fill.asked_ns = asked_ns;
  fill.tag = tag;
  fill.request.op = store::Op::kRead;
  fill.request.offset_bytes = backing.offset_bytes;
  fill.request.segment_count = 1;
  fill.request.segments[0] = {frames_.fill_address(resident, is_staged ? fill.staging : nullptr, 0),
                              block_bytes_};
  fill.request.user = &fill;
  store::Request* const request = &fill.request;
  SPW_CHECK(queue->queue->enqueue({&request, 1}) == 1);  // it is as deep as there are fills
  ++queue->in_flight;
  queue->kick_is_due = true;
  return true;
}

void Fills::kick() {
  std::lock_guard lock(mutex_);
  for (Queue& queue : queues_)
    if (std::exchange(queue.kick_is_due, false)) queue.queue->kick();
}

size_t Fills::reap(std::span<Fill*> out) {
  std::lock_guard lock(mutex_);
  size_t count = 0;
  for (Queue& queue : queues_) {
    if (queue.in_flight == 0 || count == out.size()) continue;
    store::Completion completions[kFillsMax];
    const size_t got = queue.queue->reap({completions, std::min(out.size() - count, kFillsMax)});
    queue.in_flight -= got;
    for (size_t i = 0; i < got; ++i) {
      Fill* const fill = static_cast<Fill*>(completions[i].request->user);
      fill->error = completions[i].error;
      out[count++] = fill;
    }
  }
  return count;
}

uint64_t Fills::sleep(std::vector<int>* fds) {
  std::lock_guard lock(mutex_);
  uint64_t timeout_ns = UINT64_MAX;
  for (Queue& queue : queues_) {
    if (queue.in_flight == 0) continue;
    const std::optional<store::Sleep> sleep = queue.queue->sleep();
    if (sleep->fd >= 0) fds->push_back(sleep->fd);
    timeout_ns = std::min(timeout_ns, sleep->timeout_ns);
  }
  return timeout_ns;
}

void Fills::close_store(store::Store& store) {
  std::unique_ptr<store::IoQueue> closed;  // which takes a while, so not under the lock
  std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(queues_, &store, &Queue::store);
  if (known == queues_.end()) return;
  SPW_CHECK(known->in_flight == 0);
  closed = std::move(known->queue);
  queues_.erase(known);
}

}  // namespace spw::cache
