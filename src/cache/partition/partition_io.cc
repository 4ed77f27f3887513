#include "cache/partition/partition_io.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "platform/time.h"

namespace spw::cache {

void IoOp::append_segment(std::byte* data, uint64_t bytes) {
  if (request.segment_count > 0) {
    iovec& last = request.segments[request.segment_count - 1];
    if (static_cast<std::byte*>(last.iov_base) + last.iov_len == data) {
      last.iov_len += bytes;
      return;
    }
  }
  request.segments[request.segment_count++] = {data, bytes};
}

std::byte* IoOp::data(uint32_t i, uint64_t block_bytes) const {
  uint64_t offset = i * block_bytes;
  for (size_t at = 0;; offset -= request.segments[at++].iov_len)
    if (offset < request.segments[at].iov_len)
      return static_cast<std::byte*>(request.segments[at].iov_base) + offset;
}

PartitionIo::~PartitionIo() { SPW_CHECK(!busy() && kicking_.load_acquire() == 0); }

IoOp* PartitionIo::take() {
  if (idle_.empty()) {
    if (ops_.size() == depth_) return nullptr;
    ops_.push_back(std::make_unique<IoOp>());
    idle_.push_back(ops_.back().get());
  }
  IoOp* op = idle_.back();
  idle_.pop_back();
  op->request.segment_count = 0;
  op->request.user = op;
  op->count = 0;
  op->answer_when_done = nullptr;
  op->staging = nullptr;
  op->uses_seen = true;
  op->follows_store = false;
  op->is_dirty = false;
  op->is_summed = false;
  op->is_unit = false;
  op->marker = kGroupBlocks;
  op->lifted = 0;
  return op;
}

void PartitionIo::start(IoOp* op) {
  op->sequence = next_sequence_++;
  started_.push_back(op);
}

PartitionIo::Queue* PartitionIo::queue_of(store::Store* store) {
  auto known = std::ranges::find(queues_, store, &Queue::store);
  if (known == queues_.end()) known = queues_.insert(known, Queue(store));
  if (known->queue) return &*known;
  if (store->is_short_lived() && started_.size() <= kTransfersBeforeQueue &&
      ++known->transfers <= kTransfersBeforeQueue)
    return nullptr;
  auto opened = store->open_queue(depth_);
  if (!opened) return nullptr;
  known->queue = std::move(*opened);
  return &*known;
}

// Without a queue (none is worth opening, or no descriptors are left) the transfer is done here and now.
void PartitionIo::transfer_now(IoOp* op) {
  Status status = op->store->transfer(op->request);
  done_here_.push_back({op, status.error()});
}

void PartitionIo::submit() {
  size_t taken = 0;
  while (taken < started_.size()) {
    IoOp* first = started_[taken];
    Queue* queue = queue_of(first->store);
    if (!queue) {
      transfer_now(first);
      ++taken;
      continue;
    }
    store::Request* batch[kReapMax];
    size_t count = 0;
    while (taken + count < started_.size() && count < kReapMax &&
           started_[taken + count]->store == first->store) {
      batch[count] = &started_[taken + count]->request;
      ++count;
    }
    size_t accepted = queue->queue->enqueue({batch, count});
    queue->kick_is_due = kicks_are_due_ = true;
    queue->in_flight += accepted;
    in_flight_ += accepted;
    taken += accepted;
    if (accepted < count) break;  // the rest goes with the next submit()
  }
  started_.erase(started_.begin(), started_.begin() + static_cast<ptrdiff_t>(taken));
}

void PartitionIo::collect(Kicks* kicks) {
  if (!std::exchange(kicks_are_due_, false)) return;
  for (Queue& queue : queues_) {
    if (!std::exchange(queue.kick_is_due, false)) continue;
    if (kicks->count == Kicks::kMax) {
      queue.queue->kick();
      continue;
    }
    kicks->queues[kicks->count++] = queue.queue.get();
    kicking_.fetch_add_relaxed(1);
  }
}

void PartitionIo::put_back(Kicks* kicks) {
  for (; kicks->count > 0; --kicks->count) {
    store::IoQueue* const queue = kicks->queues[kicks->count - 1];
    std::ranges::find(queues_, queue, [](const Queue& known) { return known.queue.get(); })->kick_is_due =
        true;
    kicks_are_due_ = true;
    kicking_.fetch_sub_acq_rel(1);
  }
}

void PartitionIo::kick(const Kicks& kicks) {
  for (size_t i = 0; i < kicks.count; ++i) {
    kicks.queues[i]->kick();
    kicking_.fetch_sub_acq_rel(1);  // the queue may be closed from here on
  }
}

size_t PartitionIo::reap(Done (&out)[kReapMax]) {
  size_t count = 0;
  while (!done_here_.empty() && count < kReapMax) {
    out[count++] = done_here_.back();
    done_here_.pop_back();
  }
  for (Queue& queue : queues_) {
    if (queue.in_flight == 0 || count == kReapMax) continue;
    store::Completion completions[kReapMax];
    size_t got = queue.queue->reap({completions, kReapMax - count});
    queue.in_flight -= got;
    in_flight_ -= got;
    for (size_t i = 0; i < got; ++i)
      out[count++] = {static_cast<IoOp*>(completions[i].request->user), completions[i].error};
  }
  if (!started_.empty()) submit();
  return count;
}

uint64_t PartitionIo::oldest_sequence() const {
  uint64_t oldest = UINT64_MAX;
  if (!busy()) return oldest;
  for (const auto& op : ops_)
    if (std::find(idle_.begin(), idle_.end(), op.get()) == idle_.end())
      oldest = std::min(oldest, op->sequence);
  return oldest;
}

store::IoQueue* PartitionIo::queue_to_wait_on() {
  for (size_t i = 0; i < queues_.size(); ++i) {
    Queue& queue = queues_[(wait_turn_ + i) % queues_.size()];
    if (queue.in_flight == 0) continue;
    wait_turn_ += i + 1;
    return queue.queue.get();
  }
  return nullptr;
}

bool PartitionIo::several_queues_busy() const {
  return std::count_if(queues_.begin(), queues_.end(), [](const Queue& q) { return q.in_flight > 0; }) > 1;
}

bool PartitionIo::store_busy(const store::Store& store) const {
  for (const IoOp* op : started_)
    if (op->store == &store) return true;
  for (const Done& done : done_here_)
    if (done.op->store == &store) return true;
  for (const Queue& queue : queues_)
    if (queue.store == &store) return queue.in_flight > 0;
  return false;
}

void PartitionIo::close_store(store::Store& store) {
  SPW_CHECK(!store_busy(store));
  constexpr uint64_t kPauseNs = 20'000;
  while (kicking_.load_acquire() > 0) platform::sleep_ns(kPauseNs);
  std::erase_if(queues_, [&](const Queue& queue) { return queue.store == &store; });
}

uint64_t PartitionIo::metadata_bytes() const {
  return ops_.size() * (sizeof(IoOp) + 2 * sizeof(IoOp*)) + queues_.size() * sizeof(Queue);
}

}  // namespace spw::cache
