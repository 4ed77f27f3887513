// Operations on ranges of blocks: discard, flush and waiting for writes. All work in bounded steps, so that the owner
// is never held for long; request.cursor says where to go on.
#include <algorithm>
#include <cstring>

#include "cache/partition/partition.h"
#include "platform/own_memory.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

namespace {
constexpr uint64_t kStepFrames = 4096;  // looked at in one step
}

// Calls visit(frame, word) for frames of the partition that hold a block of the range. False: a visit was refused, and
// cursor stands there. True: the range is done, or cursor < the end and there is more to do.
//
// A range of one group is looked up block by block, a longer one by going over all frames (see range_flow.cc).
template <class Visit>
bool Partition::visit_range(Request& request, Visit visit) {
  bool by_block = request.count <= kGroupBlocks;
  uint64_t end = by_block ? request.count : organisation_->frames_ever_used();
  uint64_t stop = std::min(end, request.cursor + kStepFrames);
  for (; request.cursor < stop; ++request.cursor) {
    const FrameId frame =
        by_block ? context_.directory.find(request.block + request.cursor)
                 : context_.directory.shares().first(id_) + static_cast<uint32_t>(request.cursor);
    PinWord seen = frame == kNoFrame ? PinWord::free() : word(frame).load_acquire();
    if (seen.state() == FrameState::kFree || seen.block().value - request.block.value >= request.count) {
      // Not there; but it may be on its way out.
      by_block ? organisation_->await_eviction(request.block + request.cursor)
               : organisation_->await_evictions_from(frame);
      continue;
    }
    if (seen.parked() && !seen.is_lifted()) {
      unpark(frame);
      seen = word(frame).load_acquire();
    }
    if (!visit(frame, seen)) return false;
  }
  request.answer = request.cursor == end ? Answer::kDone : Answer::kMore;
  return true;
}

void Partition::serve_discard(Request& request) {
  bool done = visit_range(request, [&](FrameId frame, PinWord seen) {
    // Who serves a fault has it for a moment: whoever faulted would read zeros. A loose one may be held for long.
    if (seen.refs() > 0 && context_.placement.is_placed({frame, seen.block()}) &&
        platform::monotonic_ns() < request.patient_until_ns)
      return false;
    return discard_frame(frame, seen);
  });
  organisation_->release_dropped();
  if (done) return;
  request.answer = Answer::kBlocked;
  describe_wait(request);
}

// False: a transfer of the frame is in flight.
bool Partition::discard_frame(FrameId frame, PinWord seen) {
  if (seen.state() == FrameState::kFailed) {
    drop_failed(frame);
    return !word(frame).load_acquire().holds(seen.block());
  }
  if (!seen.has_contents() || seen.writing()) return false;
  PinWord was;
  if (organisation_->drop(frame, seen.block(), Organisation::Drop::kAny, &was)) {
    count(Counter::discards);
    if (was.dirty()) count(Counter::dirty_discards);
    return true;
  }
  // A SATC still holds it, and may hold the right to write it without asking: the frame stays, dirty if it is, and
  // reads as zeros from now on. When the range belongs to nobody any more, its writeback finds no store and drops it.
  // Where blocks are at their own address it is made dirty first: a store to a clean one would wait for the owner.
  const Resident resident{frame, seen.block()};
  AtomicPinWord& pin_word = word(frame);
  PinWord now = pin_word.load_acquire();
  do {  // a reference of ours, so that it stays while it is zeroed
    if (!now.holds(resident.block)) return true;
    if (now.state() != FrameState::kResident || now.refs() == 0) return false;
  } while (!pin_word.cas_acquire(now, now.joined()));
  if (context_.placement.is_placed(resident)) {
    (void)pin_word.mark_dirty();
    context_.frames.allow_stores({&resident, 1});
    platform::zero_as_debugger(context_.data(resident), context_.block_bytes());
  } else {
    std::memset(context_.data(resident), 0, context_.block_bytes());
  }
  (void)pin_word.unpin();
  return true;
}

void Partition::serve_await_writes(Request& request) {
  if (visit_range(request, [](FrameId, PinWord seen) { return !seen.writing(); })) return;
  request.answer = Answer::kBlocked;
  describe_wait(request);
}

void Partition::serve_take_out(Request& request) {
  bool has_left = true;
  (void)visit_range(request, [&](FrameId frame, PinWord seen) {
    PinWord was;
    if (seen.state() == FrameState::kResident && seen.dirty() && !seen.writing())
      (void)writeback_.start(*organisation_, frame, false);
    else if (seen.has_contents() &&
             organisation_->drop(frame, seen.block(), Organisation::Drop::kClean, &was)) {
      context_.tell_left(seen.block());
      return true;
    }
    has_left = false;
    return true;
  });
  writeback_.submit();
  organisation_->release_dropped();
  request.answer = has_left ? Answer::kDone : Answer::kBlocked;
}

// request.sequence: in, the first sequence number whose failure is this flush's; out, what has to finish.
void Partition::serve_flush(Request& request) {
  if (request.sequence == 0) request.sequence = std::min(io_.oldest_sequence(), io_.next_sequence());
  bool done = visit_range(request, [&](FrameId frame, PinWord seen) {
    // Where blocks are at their own address, the store that is waited for may have happened as soon as the contents
    // were there, which is before the fill has ended and the frame counts as dirty.
    if (seen.state() == FrameState::kFilling && !seen.is_lifted() &&
        context_.placement.has_address(seen.block()))
      return false;
    if (seen.state() != FrameState::kResident || !seen.dirty()) return true;
    if (seen.writing()) return false;  // dirtied again while it is written: once more, afterwards
    return writeback_.start(*organisation_, frame, true) != Writeback::Started::kNoOperation;
  });
  writeback_.submit();
  if (done && request.answer == Answer::kMore) return;
  // All visited: what was started before now has to finish.
  if (done && request.flush_end == 0) request.flush_end = io_.next_sequence();
  if (done && request.wish == Wish::kBeginFlush) {
    request.answer = Answer::kDone;
    return;
  }
  if (!done || io_.oldest_sequence() < request.flush_end) {
    request.answer = Answer::kBlocked;
    describe_wait(request);
    return;
  }
  request.answer = Answer::kDone;
  request.status = writeback_.failure_since(request.sequence);
}

}  // namespace spw::cache
