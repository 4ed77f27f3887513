// What clients wait for: a fill, a frame.
#include <algorithm>
#include <string>

#include "cache/shared_cache.h"
#include "platform/futex.h"
#include "platform/spin.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

namespace {

// A fill that needs no I/O ends within these looks; for others a sleep is cheaper.
constexpr int kFillSpinsMax = 64;
// A wait for something that does not announce itself (a pinned frame let go) looks again after this time.
constexpr uint64_t kLookAgainNs = 1'000'000;
// A wait in a queue or for an announced event; only a safeguard.
constexpr uint64_t kAnnouncedWaitNs = 100'000'000;

}  // namespace

void SharedCacheParts::wait_while_filling(Client& client, FrameId frame, Partition& partition) {
  AtomicPinWord& pin_word = directory_.word(frame);
  for (int i = 0; i < kFillSpinsMax; ++i) {
    const PinWord word = pin_word.load_acquire();
    if (word.state() != FrameState::kFilling) return;
    if (word.parked()) break;
    platform::spin_pause();
  }
  const uint64_t begin_ns = platform::monotonic_ns();
  PinWord word = pin_word.load_acquire();
  while (word.state() == FrameState::kFilling) {
    if (word.parked()) {
      client.request.wish = Wish::kUnpark;
      client.request.frame = frame;
      delegate_->execute(partition, client.request);
      word = pin_word.load_acquire();
    } else if (word.ahead() && !delegate_->owners_run_by_themselves()) {
      // Filled through the partition's queue: somebody has to look there.
      client.request.wish = Wish::kReap;
      delegate_->execute(partition, client.request);
      if (pin_word.load_acquire().state() == FrameState::kFilling && !client.request.has_progressed)
        delegate_->await_progress(partition, client.request, kAnnouncedWaitNs);
      word = pin_word.load_acquire();
    } else if (word.waiters() || pin_word.cas_acquire(word, word.with(PinWord::kWaiters))) {
      platform::futex_wait(pin_word.futex_half(), word.with(PinWord::kWaiters).low_half());
      word = pin_word.load_acquire();
    }
  }
  count(Counter::fill_wait_ns, platform::monotonic_ns() - begin_ns);
}

// Waits for something to finish, for a moment at a time. False: the deadline has passed.
bool SharedCacheParts::await_progress(Partition& partition, const Request& request, uint64_t deadline_ns) {
  const uint64_t now_ns = platform::monotonic_ns();
  if (now_ns >= deadline_ns) return false;
  if (request.has_progressed) return true;
  const uint64_t wait_ns = request.queue ? kAnnouncedWaitNs : kLookAgainNs;
  delegate_->await_progress(partition, request, std::min(wait_ns, deadline_ns - now_ns));
  return true;
}

// No frame could be had. Waits for something to finish, up to the deadline, which starts with the first wait, and then
// until nothing is being read or written.
// `write_error`: the latest meanwhile.
Status SharedCacheParts::wait_for_frame(Client& client, Partition& partition, uint64_t* deadline_ns,
                                        Status* write_error) {
  const Request& request = client.request;
  if (!request.status) *write_error = request.status;
  if (*deadline_ns == 0) {
    *deadline_ns = platform::deadline_after(platform::monotonic_ns(), context_.options.frame_wait_ns_max);
    count(Counter::dirty_evictions);
    telemetry::note_event(telemetry::TraceEvent::kWaits, request.block.value);
  }
  if (context_.options.no_frame) context_.options.no_frame();
  if (await_progress(partition, request, *deadline_ns)) return Status::ok();
  if (request.queue != nullptr) {
    // What is being read or written may yet give a frame. How long that may take is for its store to say.
    delegate_->await_progress(partition, request, kAnnouncedWaitNs);
    return Status::ok();
  }
  Status status = *write_error
                      ? Status::sentence(EBUSY, "no frame can be evicted for block " +
                                                    std::to_string(request.block.value) + ": all are pinned")
                      : *write_error;
  tell(client, status);
  return status;
}

void SharedCacheParts::tell(const Client& client, const Status& status) {
  if (!client.takes_errors) on_error_(error_context_, status);
}

}  // namespace spw::cache
