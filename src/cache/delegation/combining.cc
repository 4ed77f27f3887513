#include "cache/delegation/combining.h"

#include <algorithm>

#include "base/check.h"
#include "platform/futex.h"
#include "telemetry/counters.h"

namespace spw::cache {

namespace {

// With several stores busy a waiter can wait in one queue only, and looks at the next one after this time.
constexpr uint64_t kWaitInOneOfSeveralNs = 500'000;

// Clients to wake once the lock is free again. Their requests may be
// reused as soon as they are answered; the words stay.
class WakeList {
 public:
  ~WakeList() { wake(); }
  void add(Atomic<uint32_t>& word) {
    if (count_ == kMax) wake();
    words_[count_++] = &word;
  }
  void wake() {
    for (size_t i = 0; i < count_; ++i) platform::futex_wake(*words_[i], 1);
    count_ = 0;
  }

 private:
  static constexpr size_t kMax = 16;
  Atomic<uint32_t>* words_[kMax];
  size_t count_ = 0;
};

}  // namespace

Combining::Combining(uint32_t partitions) : seats_(std::make_unique<Seat[]>(partitions)) {}

void Combining::execute(Partition& partition, Request& request) {
  CombinerLock& lock = seats_[partition.id().value].lock;
  if (!lock.take_or_post(request)) {
    await_answer(request);
    return;
  }
  serve_as_holder(partition, lock, request);
}

bool Combining::try_execute(Partition& partition, Request& request) {
  CombinerLock& lock = seats_[partition.id().value].lock;
  if (!lock.try_take()) return false;
  serve_as_holder(partition, lock, request);
  return true;
}

// And gives the lock up.
void Combining::serve_as_holder(Partition& partition, CombinerLock& lock, Request& request) {
  SPW_CHECK(partition.serve(request));
  Kicks kicks;
  if (!try_give_up(partition, lock, &kicks)) serve_posted(partition, lock, &kicks);
  partition.io().kick(kicks);
}

// With the kicks that are due, which are this thread's then.
bool Combining::try_give_up(Partition& partition, CombinerLock& lock, Kicks* kicks) {
  partition.io().collect(kicks);
  if (lock.try_give_up()) return true;
  partition.io().put_back(kicks);
  return false;
}

void Combining::serve_posted(Partition& partition, CombinerLock& lock, Kicks* kicks) {
  WakeList sleepers;
  do {
    Request* in_order = in_posting_order(lock.take_all());
    while (in_order) {
      Request& request = *in_order;
      in_order = request.next;
      SPW_CHECK(partition.serve(request));
      telemetry::count(telemetry::Counter::delegated);
      Atomic<uint32_t>& word = request.state;
      if (hand_back(request)) sleepers.add(word);
    }
  } while (!try_give_up(partition, lock, kicks));
}

void Combining::await_progress(Partition& partition, const Request& request, uint64_t timeout_ns) {
  uint64_t in_queue_ns =
      request.more_than_one_queue ? std::min(kWaitInOneOfSeveralNs, timeout_ns) : timeout_ns;
  if (request.queue && partition.progress().wait_in_queue(request.progress, *request.queue, in_queue_ns))
    return;
  partition.progress().sleep(request.progress, timeout_ns);
}

}  // namespace spw::cache
