#include "store/striped/direct_parts.h"

#include <algorithm>

#include "platform/time.h"

namespace spw::store {

Result<std::unique_ptr<IoEngine>> DirectParts::create(PartedStore& store, const std::vector<Store*>& members,
                                                      size_t depth) {
  std::unique_ptr<DirectParts> engine(new DirectParts(store, depth));
  for (Store* member : members) {
    auto queue = member->open_queue(depth);
    if (!queue) return queue.status();
    const std::optional<Sleep> sleep = (*queue)->sleep();
    if (!sleep || sleep->fd < 0) return std::unique_ptr<IoEngine>();
    engine->fds_.push_back(sleep->fd);
    engine->queues_.push_back(std::move(*queue));
  }
  auto wake = platform::WakeFd::create();
  if (!wake) return wake.status();
  engine->wake_ = std::move(*wake);
  engine->fds_.push_back(engine->wake_.fd());
  engine->waiting_.resize(members.size());
  engine->results_.reserve(depth);
  return std::unique_ptr<IoEngine>(std::move(engine));
}

void DirectParts::issue(std::span<const RawIo> ios) {
  for (const RawIo& io : ios) {
    PartedStep& step = steps_[io.slot];
    step.store = &store_;
    step.io = io;
    step.deals = 0;
    start(step);
  }
  submit_waiting();
  publish();
}

void DirectParts::start(PartedStep& step) {
  Parts parts;
  ++step.deals;
  const int error = store_.deal(step, parts);
  if (error != 0 || parts.empty()) return end(step, error);
  step.error.store_relaxed(0);
  step.parts_left.store_relaxed(parts.size());
  for (auto& part : parts) {
    part->owner = &step;
    part->request.user = part.get();
    store_.begin_part(*part);
    waiting_[part->member].push_back(std::move(part));
  }
}

void DirectParts::end(PartedStep& step, int error) {
  error = store_.end_step(step, error);
  if (error == kDealAgain) return start(step);
  results_.push_back({step.io.slot, error != 0 ? -error : step.bytes, error != 0});
}

// True when it has submitted some, which are under way after the next kick().
bool DirectParts::submit_waiting() {
  bool has_some = false;
  for (size_t member = 0; member < queues_.size(); ++member) {
    auto& waiting = waiting_[member];
    while (!waiting.empty()) {
      Request* request = &waiting.front()->request;
      if (queues_[member]->enqueue({&request, 1}) == 0) break;
      (void)waiting.front().release();  // reap() takes it back from its request
      waiting.pop_front();
      has_some = true;
    }
  }
  return has_some;
}

void DirectParts::kick() {
  for (auto& queue : queues_) queue->kick();
}

void DirectParts::reap(IoQueue& queue) {
  constexpr size_t kAtOnce = 32;
  Completion done[kAtOnce];
  for (size_t count = kAtOnce; count == kAtOnce;) {
    count = queue.reap(done);
    for (size_t i = 0; i < count; ++i) {
      std::unique_ptr<StripePart> part(static_cast<StripePart*>(done[i].request->user));
      auto& step = *static_cast<PartedStep*>(part->owner);
      const int error = store_.end_part(*part, done[i].error);
      if (error != 0) step.error.store_relaxed(error);
      if (step.parts_left.fetch_sub_acq_rel(1) == 1) end(step, step.error.load_relaxed());
    }
  }
}

size_t DirectParts::harvest(std::span<RawResult> out) {
  for (auto& queue : queues_) reap(*queue);  // of idle ones the descriptor may be readable all the same
  if (submit_waiting()) kick();
  const size_t taken = std::min(out.size(), results_.size());
  std::copy_n(results_.begin(), taken, out.begin());
  results_.erase(results_.begin(), results_.begin() + static_cast<ptrdiff_t>(taken));
  publish();
  return taken;
}

// Tells wait() what only this thread sees.
void DirectParts::publish() {
  uint64_t in_ns = UINT64_MAX;
  for (auto& queue : queues_) {
    const Sleep sleep = *queue->sleep();  // wait() polls all of them
    if (queue->in_flight() > 0) in_ns = std::min(in_ns, sleep.timeout_ns);
  }
  const uint64_t due_ns =
      in_ns == UINT64_MAX ? UINT64_MAX : platform::deadline_after(platform::monotonic_ns(), in_ns);
  due_ns_.store_release(due_ns);
  has_results_.store_release(!results_.empty());
  if (in_ns == 0 || !results_.empty()) wake_.wake();
}

void DirectParts::wait(uint64_t timeout_ns) {
  kick();
  // Pair with publish(): who sees that there are some may go and harvest them.
  if (has_results_.load_acquire()) return;
  const uint64_t due_ns = due_ns_.load_acquire();
  if (due_ns != UINT64_MAX) {
    const uint64_t now_ns = platform::monotonic_ns();
    timeout_ns = std::min(timeout_ns, due_ns > now_ns ? due_ns - now_ns : 0);
  }
  platform::wait_readable(fds_, std::min(timeout_ns, kWaitMaxNs));
  wake_.clear();
}

}  // namespace spw::store
