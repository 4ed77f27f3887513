#include "cache/delegation/dedicated.h"

#include "platform/futex.h"
#include "platform/spin.h"
#include "telemetry/counters.h"

namespace spw::cache {

namespace {

constexpr uintptr_t kNone = 0, kAsleepBit = 1;
// About as long as a sleep and a wake cost.
constexpr int kIdleSpinsMax = 400;
// With several queues busy a server sleeps in one of them, and looks at the others after this time.
constexpr uint64_t kOneOfSeveralNs = 100'000;

}  // namespace

Dedicated::Dedicated(std::span<const std::unique_ptr<Partition>> partitions, unsigned servers) {
  for (unsigned s = 0; s < servers && s < partitions.size(); ++s)
    servers_.push_back(std::make_unique<Server>());
  for (size_t p = 0; p < partitions.size(); ++p)
    servers_[p % servers_.size()]->partitions.push_back(partitions[p].get());
}

Status Dedicated::start() {
  for (auto& server : servers_) {
    auto thread = platform::Thread::start([&s = *server] { run(s); });
    if (!thread) return thread.status();
    server->thread = std::move(*thread);
  }
  return Status::ok();
}

Dedicated::~Dedicated() {
  for (auto& server : servers_) {
    server->stop.store_release(true);
    wake(*server);
  }
}

void Dedicated::execute(Partition& partition, Request& request) {
  Server& server = *servers_[partition.id().value % servers_.size()];
  request.partition = &partition;
  request.state.store_relaxed(kPosted);
  uintptr_t word = server.posted.load_relaxed();
  do {
    request.next = word == kAsleepBit ? nullptr : reinterpret_cast<Request*>(word);
  } while (!server.posted.cas_weak_release(word, reinterpret_cast<uintptr_t>(&request)));
  if (word == kAsleepBit) wake(server);
  await_answer(request);
}

void Dedicated::await_progress(Partition& partition, const Request& request, uint64_t timeout_ns) {
  partition.progress().sleep(request.progress, timeout_ns);
}

// ---- The server's side ----

void Dedicated::run(Server& server) {
  int idle_spins = 0;
  while (!server.stop.load_acquire()) {
    bool worked = serve_posted(server);
    worked |= reap_all(server);
    if (worked) {
      idle_spins = 0;
    } else if (++idle_spins < kIdleSpinsMax) {
      platform::spin_pause();
    } else {
      sleep(server);
      idle_spins = 0;
    }
  }
}

bool Dedicated::serve_posted(Server& server) {
  if (server.posted.load_relaxed() == kNone) return false;
  Request* in_order = in_posting_order(reinterpret_cast<Request*>(server.posted.exchange_acquire(kNone)));
  while (in_order) {
    Request& request = *in_order;
    in_order = request.next;
    Partition& partition = *request.partition;
    Atomic<uint32_t>& word = request.state;
    const bool is_answered = partition.serve(request);
    partition.kick();
    if (is_answered && hand_back(request)) platform::futex_wake(word, 1);
    telemetry::count(telemetry::Counter::delegated);
    hand_back_late(partition);
  }
  return true;
}

bool Dedicated::reap_all(Server& server) {
  bool any = false;
  for (Partition* partition : server.partitions) {
    if (!partition->io_busy()) continue;
    any |= partition->reap();
    partition->kick();
    hand_back_late(*partition);
  }
  return any;
}

void Dedicated::hand_back_late(Partition& partition) {
  for (Request* request : partition.answered_late()) {
    Atomic<uint32_t>& word = request->state;
    if (hand_back(*request)) platform::futex_wake(word, 1);
  }
  partition.answered_late().clear();
}

void Dedicated::sleep(Server& server) {
  store::IoQueue* queue = nullptr;
  unsigned busy = 0;
  for (Partition* partition : server.partitions) {
    if (!partition->io_busy()) continue;
    busy += partition->io().several_queues_busy() ? 2 : 1;
    if (store::IoQueue* one = partition->io().queue_to_wait_on()) queue = one;
  }
  uint32_t wakeups = server.wakeups.load_acquire();
  {
    std::lock_guard lock(server.sleep_mutex);
    server.sleeps_in = queue;
  }
  uintptr_t none = kNone;
  if (server.posted.cas_strong_acq_rel(none, kAsleepBit)) {
    if (queue)
      queue->wait(busy > 1 ? kOneOfSeveralNs : platform::kNoTimeout);
    else if (!server.stop.load_acquire())
      platform::futex_wait(server.wakeups, wakeups);
    uintptr_t asleep = kAsleepBit;
    server.posted.cas_strong_acquire(asleep, kNone);
  }
  // From here on nobody wakes through the queue, so it may be closed.
  std::lock_guard lock(server.sleep_mutex);
  server.sleeps_in = nullptr;
}

// Both ways, since the server may be on its way from one to the other.
void Dedicated::wake(Server& server) {
  server.wakeups.fetch_add_acq_rel(1);
  std::lock_guard lock(server.sleep_mutex);
  if (server.sleeps_in)
    server.sleeps_in->wake();
  else
    platform::futex_wake(server.wakeups, 1);
}

}  // namespace spw::cache
