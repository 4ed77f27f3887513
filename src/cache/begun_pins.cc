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
  fills_.push_back(std::make_unique<Fills>(*frames_, context_.block_bytes(),
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
  if (!context_.options.clients_pin || context_.owner_fills) return Begun::kWouldWait;
  const WaitsForNobody guard(client);
  Miss miss(client, block, access, partition_of(block), out);
  miss.partition.organisation().prefetch_block(block);
  miss.asked_ns = platform::monotonic_ns();
  const Step step = begin_present(miss);
  const Begun begun = step == Step::kPinned  ? Begun::kPinned
                      : step == Step::kError ? Begun::kWouldWait
                                             : begin_miss(miss, fills, tag);
  *status = std::move(miss.status);
  if (begun == Begun::kPinned) out->data = context_.data(miss.resident());
  if (begun != Begun::kWouldWait && context_.options.use_observer) context_.options.use_observer->used(block);
  return begun;
}

// kAgain: the block is not there. kError: it is on its way.
SharedCacheParts::Step SharedCacheParts::begin_present(Miss& miss) {
  return take_present(miss, [&](AtomicPinWord& pin_word, PinWord& word) -> std::optional<Step> {
    if (!word.parked()) return Step::kError;
    if (!pin_word.cas_acquire(word, word.joined())) return std::nullopt;
    return begin_parked(miss);
  });
}

// This client has a reference to a frame whose contents are at hand: the owner only has to be asked for them.
SharedCacheParts::Step SharedCacheParts::begin_parked(Miss& miss) {
  const FrameId frame = miss.out->frame;
  miss.client.request.wish = Wish::kUnpark;
  miss.client.request.frame = frame;
  const bool is_asked = ask(miss.client, miss.partition);
  if (is_asked && directory_.word(frame).load_acquire().state() == FrameState::kResident)
    return await_filled(miss);  // which does not wait
  leave_filling(miss.client, frame, miss.partition);
  return Step::kError;
}

// What is to come along with the block is asked for, and it with
// that: who needs it waits for it as for what is read ahead.
bool SharedCacheParts::begin_unit(Miss& miss) {
  const FaultAround::Unit unit = unit_to_bring(miss);
  if (unit.count == 1) return false;
  bring_unit(miss.client, unit, miss.access_ahead());
  if (directory_.find(miss.block) == kNoFrame) return false;
  note_unit_missed(miss, unit);
  miss.out->was_miss = true;
  telemetry::count_miss(miss.block.value);
  return true;
}

// Whether a read can begin has to be known before a frame is taken for it.
Begun SharedCacheParts::begin_miss(Miss& miss, Fills* fills, uint64_t tag) {
  Client& client = miss.client;
  if (fills && is_read(hint(miss), miss.access) && !fills->may_begin(hint(miss).store))
    return Begun::kWouldWait;
  if (miss.access != Access::kOverwrite && begin_unit(miss)) return Begun::kWouldWait;
  Request& request = client.request;
  if (context_.clients_take && (!context_.placement.has_address(miss.block) || hint(miss).has_contents)) {
    const Organisation::Taken taken = miss.partition.organisation().take_alone(miss.block);
    if (taken.how == Organisation::Take::kTaken) {
      miss.out->frame = taken.frame;
      const Begun begun = begin_fill(miss, fills, tag, blocks_.locate_for_fill(miss.block));
      request.wish = Wish::kReap;
      if (miss.partition.organisation().wants_owner()) (void)ask(client, miss.partition);
      return begun;
    }
  }
  request.wish = Wish::kPin;
  request.block = miss.block;
  request.access = miss.access;
  if (!ask(client, miss.partition)) return Begun::kWouldWait;
  miss.out->frame = request.frame;
  if (note_answered(miss)) return Begun::kPinned;
  if (request.answer == Answer::kFill) return begin_fill(miss, fills, tag, backing_of(request));
  if (request.answer == Answer::kJoined) leave_filling(client, miss.out->frame, miss.partition);
  return Begun::kWouldWait;
}

// Into the frame that was taken for it. What is read ahead on its
// account is asked for once its own read is in the queue.
Begun SharedCacheParts::begin_fill(Miss& miss, Fills* fills, uint64_t tag, const Backing& backing) {
  if (!fills || !is_read(backing, miss.access)) {
    if (fill(miss, backing) != Step::kPinned) return Begun::kFailed;
    note_missed(miss);
    return Begun::kPinned;
  }
  if (!fills->begin(miss.resident(), backing, miss.access, miss.asked_ns, tag)) {
    give_up_fill(miss.client, miss.resident());
    return Begun::kWouldWait;
  }
  context_.tell_of_fill(miss.block, true);
  note_miss(miss, true);
  return Begun::kStarted;
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
      telemetry::note_event(telemetry::TraceEvent::kFailed, fill.resident.block.value,
                            static_cast<uint64_t>(fill.error));
      ended.status = fill_error(fill.resident.block, *fill.store, fill.request.offset_bytes, fill.error);
    }
    count(Counter::fill_wait_ns, telemetry::note_missed(fill.resident.block.value, fill.asked_ns));
    const uint64_t dirty_flags = fill.access == Access::kRead ? 0 : PinWord::kDirty;
    (void)end_fill(client, fill.resident, dirty_flags, fill.store, ended.status);
    ended.pin = {context_.data(fill.resident), false, true, true, fill.resident.frame};
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
