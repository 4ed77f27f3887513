// Pins that need not be waited for: what can be had at once is pinned, a miss is begun, and its reader ends it when it
// has been read. The steps are those of a pin (shared_cache.h), but that in the fourth the read goes into a queue of
// the client's thread (fills.h). Whoever calls them may be whom an owner waits for (a poller of page faults), so no
// owner is waited for: WaitsForNobody.
#include <string>
#include <utility>

#include "cache/fills.h"
#include "cache/shared_cache.h"
#include "platform/futex.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

namespace {
// Whether its store is read for it; else it is zeros, overwritten, or in no region.
bool is_read(const Backing& backing, Access access) {
  return access != Access::kOverwrite && backing.store != nullptr && backing.has_contents;
}
}  // namespace

Fills* SharedCacheParts::open_fills() {
  std::lock_guard lock(clients_mutex_);
  fills_.push_back(std::make_unique<Fills>(*frames_, commons_.block_bytes(),
                                           directory_.shares().frame_count(), fills_bytes_));
  return fills_.back().get();
}

size_t SharedCacheParts::room_for_fills(const Fills& fills) const { return fills.room(); }

void SharedCacheParts::start_fills(Fills& fills) { fills.kick(); }

uint64_t SharedCacheParts::sleep_of_fills(Fills& fills, std::vector<int>* fds) { return fills.sleep(fds); }

Begun SharedCacheParts::begin_pin(Client& client, Fills& fills, BlockId block, Access access, uint64_t tag,
                                  Pin* out, Status* status) {
  return pin_or_begin(client, &fills, block, access, tag, out, status);
}

Begun SharedCacheParts::try_pin(Client& client, BlockId block, Access access, Pin* out, Status* status) {
  return pin_or_begin(client, nullptr, block, access, 0, out, status);
}

// `fills`: where a read goes; nullptr: it is done here and now. Where owners fill, who asks waits for them.
Begun SharedCacheParts::pin_or_begin(Client& client, Fills* fills, BlockId block, Access access, uint64_t tag,
                                     Pin* out, Status* status) {
  *out = Pin();
  if (fills && fills->room() == 0) return Begun::kWouldWait;
  if (!commons_.options.clients_pin || commons_.owner_fills) return Begun::kWouldWait;
  const WaitsForNobody guard(client);
  client.asked_ns = platform::monotonic_ns();
  client.has_waited = false;
  const Step step = begin_present(client, block, access, out, status);
  Begun begun = step == Step::kPinned  ? Begun::kPinned
                : step == Step::kError ? Begun::kWouldWait
                                       : begin_miss(client, fills, block, access, tag, out, status);
  if (begun == Begun::kPinned) out->data = commons_.data({out->frame, block});
  if (begun != Begun::kWouldWait && commons_.options.observer) commons_.options.observer->used(block);
  return begun;
}

// kAgain: the block is not there. kError: it is on its way.
SharedCacheParts::Step SharedCacheParts::begin_present(Client& client, BlockId block, Access access, Pin* out,
                                                       Status* status) {
  out->frame = directory_.find(block);
  if (out->frame == kNoFrame) return Step::kAgain;
  AtomicPinWord& pin_word = directory_.word(out->frame);
  PinWord word = pin_word.load_acquire();
  while (word.holds(block)) {
    if (pin_resident(client, block, access, out, &word)) return Step::kPinned;
    if (!word.holds(block)) break;
    if (!word.parked()) return Step::kError;
    if (pin_word.cas_acquire(word, word.joined())) return begin_parked(client, block, access, out, status);
  }
  return Step::kAgain;
}

// This client has a reference to a frame whose contents are at hand: the owner only has to be asked for them.
SharedCacheParts::Step SharedCacheParts::begin_parked(Client& client, BlockId block, Access access, Pin* out,
                                                      Status* status) {
  Partition& partition = partition_of(block);
  client.request.wish = Wish::kUnpark;
  client.request.frame = out->frame;
  const bool is_asked = ask(client, partition);
  const PinWord word = directory_.word(out->frame).load_acquire();
  if (is_asked && word.state() == FrameState::kResident)
    return await_filled(client, block, access, out, status);  // which does not wait
  leave_filling(client, out->frame, partition);
  return Step::kError;
}

// What is to come along with the block is asked for, and it with
// that: who needs it waits for it as for what is read ahead.
bool SharedCacheParts::begin_unit(Client& client, BlockId block, Access access, Pin* out) {
  const FillUnits::Unit unit = unit_to_bring(client, block, access);
  if (unit.count == 1) return false;
  bring_unit(client, unit);
  if (directory_.find(block) == kNoFrame) return false;
  note_unit_missed(client, unit, block);
  out->was_miss = true;
  telemetry::count_miss(block.value);
  return true;
}

Begun SharedCacheParts::begin_miss(Client& client, Fills* fills, BlockId block, Access access, uint64_t tag,
                                   Pin* out, Status* status) {
  const Backing backing = blocks_.locate_for_fill(block);
  if (fills && is_read(backing, access) && !fills->may_begin(backing.store)) return Begun::kWouldWait;
  if (access != Access::kOverwrite && begin_unit(client, block, access, out)) return Begun::kWouldWait;
  Partition& partition = partition_of(block);
  Request& request = client.request;
  const bool may_take =
      commons_.clients_take && (!commons_.placement.is_in_place(block) || backing.has_contents);
  if (may_take) {
    const Organisation::Taken taken = partition.organisation().take_alone(block);
    if (taken.how == Organisation::Take::kTaken) {
      commons_.tell_of_fill(block, access);
      out->frame = taken.frame;
      const Begun begun = begin_fill(client, fills, block, access, tag, out, status);
      request.wish = Wish::kReap;
      if (partition.organisation().wants_owner()) (void)ask(client, partition);
      return begun;
    }
  }
  request.wish = Wish::kPin;
  request.block = block;
  request.access = access;
  if (!ask(client, partition)) return Begun::kWouldWait;
  out->frame = request.frame;
  if (note_answered(client, block, access, out)) return Begun::kPinned;
  if (request.answer == Answer::kFill) return begin_fill(client, fills, block, access, tag, out, status);
  if (request.answer == Answer::kJoined) leave_filling(client, out->frame, partition);
  return Begun::kWouldWait;
}

// Into the frame that was taken for it. What is read ahead on its
// account is asked for once its own read is in the queue.
Begun SharedCacheParts::begin_fill(Client& client, Fills* fills, BlockId block, Access access, uint64_t tag,
                                   Pin* out, Status* status) {
  const Resident resident{out->frame, block};
  const Backing backing = blocks_.locate_for_fill(block);
  const bool is_queued = fills && is_read(backing, access);
  if (is_queued && !fills->begin(resident, backing, access, client.asked_ns, tag)) {
    give_up_fill(client, resident);
    return Begun::kWouldWait;
  }
  out->was_miss = out->was_filled = true;
  note_miss(client, block, access);
  if (is_queued) return Begun::kStarted;
  *status = transfer_in(client, resident, backing, access);
  if (end_fill(client, resident, access, backing.store, *status) != Step::kPinned) return Begun::kFailed;
  telemetry::note_miss_latency(platform::monotonic_ns() - client.asked_ns);
  return Begun::kPinned;
}

// Of a frame that was taken for it. Who has joined, and who comes,
// finds that it failed without an error, and asks anew.
void SharedCacheParts::give_up_fill(Client& client, Resident resident) {
  AtomicPinWord& pin_word = directory_.word(resident.frame);
  if (pin_word.end_filling(FrameState::kFailed, 0)) platform::futex_wake_all(pin_word.futex_half());
  leave_failed(client, resident.frame, partition_of(resident.block));
}

size_t SharedCacheParts::end_pins(Client& client, Fills& fills, std::span<EndedPin> out) {
  const WaitsForNobody guard(client);
  Fills::Fill* done[Fills::kFillsMax];
  const size_t count_done = fills.reap({done, std::min(out.size(), Fills::kFillsMax)});
  for (size_t i = 0; i < count_done; ++i) {
    Fills::Fill& fill = *done[i];
    EndedPin& ended = out[i];
    ended.tag = fill.tag;
    ended.status = Status::ok();
    if (fill.error == 0) {
      frames_->install({&fill.resident, 1}, Contents::kFilled, fill.is_staged ? fill.staging : nullptr,
                       fill.access != Access::kRead);
      count(Counter::fills);
    } else {
      ended.status = fill_error(fill.resident.block, *fill.store, fill.request.offset_bytes, fill.error);
    }
    const uint64_t took_ns = platform::monotonic_ns() - fill.asked_ns;
    count(Counter::fill_wait_ns, took_ns);
    telemetry::note_miss_latency(took_ns);
    (void)end_fill(client, fill.resident, fill.access, fill.store, ended.status);
    ended.pin = {commons_.data(fill.resident), false, true, true, fill.resident.frame};
    fills.put_back(&fill);
  }
  return count_done;
}

// This client has a reference to a frame that someone else fills, and does not wait for it.
void SharedCacheParts::leave_filling(Client& client, FrameId frame, Partition& partition) {
  AtomicPinWord& pin_word = directory_.word(frame);
  PinWord word = pin_word.load_acquire();
  while (word.state() == FrameState::kFilling)
    if (pin_word.cas_acquire(word, word.left())) return;
  if (word.state() == FrameState::kFailed) return leave_failed(client, frame, partition);
  unpin(client, frame);
}

}  // namespace spw::cache
