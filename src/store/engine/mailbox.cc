#include "store/engine/mailbox.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "platform/time.h"
#include "platform/uncancelled.h"

namespace spw::store {

Mailbox::Mailbox(size_t depth, std::function<void()> wake_others)
    : wake_others_(std::move(wake_others)), tasks_(depth) {
  results_.reserve(depth);
  for (WorkerTask& task : tasks_) {
    task.mailbox = this;
    task.next = std::exchange(free_tasks_, &task);
  }
}

// Notifies under the lock, so that the waiter cannot destroy the mailbox between the two.
void Mailbox::put(std::span<const RawResult> results) {
  std::lock_guard lock(mutex_);
  results_.insert(results_.end(), results.begin(), results.end());
  changed_.notify_one();
  if (wake_others_) wake_others_();
}

bool Mailbox::is_empty() {
  std::lock_guard lock(mutex_);
  return results_.empty();
}

size_t Mailbox::take(std::span<RawResult> out) {
  std::lock_guard lock(mutex_);
  size_t taken = std::min(out.size(), results_.size());
  std::copy_n(results_.end() - static_cast<ptrdiff_t>(taken), taken, out.begin());
  results_.resize(results_.size() - taken);
  return taken;
}

void Mailbox::wait(uint64_t timeout_ns) {
  platform::Uncancelled guard;
  std::unique_lock lock(mutex_);
  auto something_came = [this] { return !results_.empty() || woken_; };
  // The clock's time points end 292 years from its start; what asks for that long asks for no limit.
  constexpr uint64_t kLongestNs = uint64_t{1} << 62;
  if (timeout_ns >= kLongestNs) {
    changed_.wait(lock, something_came);
  } else {
    // By this clock, since a wait by the steady one takes glibc 2.34, and the tool starts with older ones.
    const auto end = std::chrono::system_clock::now() + std::chrono::nanoseconds(timeout_ns);
    changed_.wait_until(lock, end, something_came);
  }
  woken_ = false;
}

RawResult Mailbox::await() {
  RawResult result;
  while (take({&result, 1}) == 0) wait(platform::kNoTimeout);
  return result;
}

void Mailbox::wake() {
  std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

}  // namespace spw::store
