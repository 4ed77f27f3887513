// Fills through the owner's queues: read-ahead, and the demand fills of the dedicated mode.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cache/partition/partition.h"
#include "platform/futex.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

namespace {
// Blocks ahead whose lines are on their way while one is looked at.
constexpr uint64_t kComesSoon = 8;
// Frames that are made free at a time. Not all blocks that are asked for may need one.
constexpr uint64_t kRoomMade = 16;
}  // namespace

// For so many blocks at most, from this one on.
bool Partition::take_staging(IoOp& op, BlockId block, uint64_t blocks) {
  const FrameSource::StagingUse use = context_.frames.staging_use(block, blocks);
  if (use == FrameSource::StagingUse::kNone) return true;
  const auto try_kind = [&](FrameSource::Staging kind) {
    op.staging = context_.frames.take_staging(kind);
    op.staging_kind = kind;
    return op.staging != nullptr;
  };
  return (blocks == 1 && try_kind(FrameSource::Staging::kPiece)) || try_kind(FrameSource::Staging::kRun) ||
         use == FrameSource::StagingUse::kWanted;
}

void Partition::give_staging_back(IoOp& op) {
  if (op.staging) context_.frames.give_back(op.staging_kind, std::exchange(op.staging, nullptr));
}

// What a read of it looks at, and its frame's insertion changes.
void Partition::prefetch_block(BlockId block) const {
  context_.directory.prefetch_slot(block);
  organisation_->prefetch_block(block);
}

bool Partition::may_read_ahead() const { return organisation_->ahead_unused() < ahead_max_; }

// `wanted`: it and those that come next.
Organisation::Taken Partition::take_ahead(BlockId block, uint64_t wanted) {
  if (organisation_->free_frames() == 0)
    organisation_->make_room(static_cast<uint32_t>(std::min(wanted, kRoomMade)));
  return take(block, 0, true);
}

// Of a run that begins with the block. Where it costs no write to be wrong, what stores to blocks that came before is
// told even of loads' streams.
void Partition::expect_stores(IoOp& run, const Request& request, BlockId block) const {
  const bool is_shared = context_.comes_summed(block);
  run.follows_store = (request.access == Access::kWrite || is_shared) && context_.may_come_dirty(block);
  run.is_dirty = run.follows_store && context_.frames.comes_stored_to(block);
  run.is_summed = run.is_dirty && is_shared;
}

// Neighbours on the store become one request. Stops at the first block for which there is no frame or no operation.
void Partition::serve_prefetch(Request& request) {
  request.answer = Answer::kDone;
  request.cursor = 0;
  if (request.is_unit && request.count > std::max(organisation_->limit() / kAheadShare, 1u)) return;
  IoOp* run = nullptr;
  auto end_run = [&] {
    if (run && run->count > 0) {
      io_.start(run);
    } else if (run) {
      give_staging_back(*run);
      io_.put_back(run);
    }
    run = nullptr;
  };
  const auto block_at = [&](uint64_t i) {
    return BlockId(request.block.value + i * static_cast<uint64_t>(request.stride));
  };
  for (uint64_t i = 0; i < std::min(request.count, kComesSoon); ++i) prefetch_block(block_at(i));
  uint64_t i = 0;
  for (; i < request.count && (request.is_unit || may_read_ahead()); ++i) {
    const BlockId block = block_at(i);
    if (i + kComesSoon < request.count) prefetch_block(block_at(i + kComesSoon));
    if (context_.directory.find(block) != kNoFrame) {
      end_run();
      continue;
    }
    Backing backing = context_.blocks.locate_for_fill(block);
    if (backing.store == nullptr) break;
    if (!backing.has_contents) {
      end_run();
      continue;
    }
    if (run && (run->store != backing.store || run->count == run_blocks_max_ ||
                run->request.offset_bytes + run->count * context_.block_bytes() != backing.offset_bytes ||
                (run->follows_store && !context_.may_come_dirty(block))))
      end_run();
    if (!run) {
      run = io_.take();
      if (!run) break;
      if (!take_staging(*run, block, request.count - i)) {
        io_.put_back(std::exchange(run, nullptr));
        break;
      }
      run->kind = IoOp::Kind::kAhead;
      run->uses_seen = request.uses_seen;
      run->is_unit = request.is_unit;
      expect_stores(*run, request, block);
      run->store = backing.store;
      run->first = block;
      run->request.op = store::Op::kRead;
      run->request.offset_bytes = backing.offset_bytes;
    }
    const Organisation::Taken taken = take_ahead(block, request.count - i);
    if (taken.how == Organisation::Take::kNone) break;
    if (taken.how == Organisation::Take::kPresent) {
      end_run();
      continue;
    }
    context_.tell_of_fill(block, true);
    run->append_segment(context_.frames.fill_address({taken.frame, block}, run->staging, run->count),
                        context_.block_bytes());
    if (block == request.marker) run->marker = run->count;
    run->frames[run->count++] = taken.frame;
  }
  request.cursor = i;
  end_run();
  io_.submit();
}

// Dedicated mode: the read of a demanded block goes into the owner's queue, and the request is answered when it is
// done. False: nothing to read, or no operation left; then the client fills the frame.
bool Partition::start_owner_fill(Request& request) {
  if (request.access == Access::kOverwrite) return false;
  if (!request.backing) request.backing = context_.blocks.locate_for_fill(request.block);
  const Backing& backing = *request.backing;
  if (backing.store == nullptr || !backing.has_contents) return false;
  IoOp* op = io_.take();
  if (!op) return false;
  if (!take_staging(*op, request.block, 1)) {
    io_.put_back(op);
    return false;
  }
  context_.tell_of_fill(request.block, true);
  op->kind = IoOp::Kind::kFill;
  op->store = backing.store;
  op->first = request.block;
  op->count = 1;
  op->frames[0] = request.frame;
  op->request.op = store::Op::kRead;
  op->request.offset_bytes = backing.offset_bytes;
  op->append_segment(context_.frames.fill_address({request.frame, request.block}, op->staging, 0),
                     context_.block_bytes());
  op->answer_when_done = &request;
  io_.start(op);
  io_.submit();
  return true;
}

// Puts the run's contents in place, but those of a block that is to be parked and for which there is room.
void Partition::install_run(IoOp& op) {
  const bool demanded = op.kind == IoOp::Kind::kFill;
  Resident run[kGroupBlocks];
  for (uint32_t i = 0; i < op.count; ++i) run[i] = {op.frames[i], op.block(i)};
  const auto install = [&](uint32_t begin, uint32_t end) {
    if (begin == end) return;
    const std::byte* contents =
        op.staging ? context_.frames.fill_address(run[begin], op.staging, begin) : nullptr;
    for (uint32_t i = begin; i < end && op.is_summed; ++i)
      context_.fill_sums.note(run[i].frame, contents + (i - begin) * context_.block_bytes());
    context_.frames.install({run + begin, end - begin}, Contents::kFilled, contents, op.is_dirty);
    if (!op.follows_store || op.is_dirty) return;
    // Not one that somebody waits for already, as the block that the others come along with.
    for (uint32_t i = begin; i < end; ++i)
      if (word(run[i].frame).load_relaxed().refs() == 0) context_.frames.watch_for_store(run[i]);
  };
  if (op.marker < op.count &&
      !park(run[op.marker], context_.frames.fill_address(run[op.marker], op.staging, op.marker)))
    op.marker = op.count;
  install(0, std::min(op.marker, op.count));
  if (op.marker < op.count) install(op.marker + 1, op.count);
  if (!demanded && op.uses_seen && context_.frames.notes_uses())
    for (uint32_t i = 0; i < op.count; ++i) context_.frames.watch_for_use(run[i]);
  if (op.is_unit) {
    count(Counter::fills);
    count(Counter::unit_fills, op.count - 1);
  } else {
    count(demanded ? Counter::fills : Counter::readahead_fills, op.count);
  }
}

void Partition::finish_fill(IoOp& op, int error) {
  const bool demanded = op.kind == IoOp::Kind::kFill, keeps_ahead = op.uses_seen && !op.is_unit;
  if (error == 0)
    install_run(op);
  else
    telemetry::note_event(telemetry::TraceEvent::kFailed, op.first.value, static_cast<uint64_t>(error));
  for (uint32_t i = 0; i < op.count; ++i) {
    AtomicPinWord& pin_word = context_.directory.word(op.frames[i]);
    if (error != 0 && demanded) {
      context_.errors.put(op.frames[i], fill_error(op.block(i), *op.store, op.request.offset_bytes, error));
    }
    if (error == 0 && i == op.marker) {
      if (pin_word.park().refs() > 0) unpark(op.frames[i]);
      continue;
    }
    // A read-ahead that failed leaves no error: who waited for one of its blocks reads that block alone.
    const uint64_t cleared = keeps_ahead || error != 0 ? 0 : PinWord::kAhead;
    if (cleared != 0) organisation_->ahead_used();
    uint64_t dirty = op.is_dirty && error == 0 ? PinWord::kDirty : 0;
    if (dirty != 0 && op.is_summed) dirty |= PinWord::kSummed;
    if (dirty != 0) count(Counter::bytes_dirtied, context_.block_bytes());
    if (pin_word.end_filling(error == 0 ? FrameState::kResident : FrameState::kFailed, dirty, cleared))
      platform::futex_wake_all(pin_word.futex_half());
    if (error != 0) drop_failed(op.frames[i]);
  }
  give_staging_back(op);
  if (op.answer_when_done) {
    op.answer_when_done->answer = Answer::kFilled;
    answered_late_.push_back(op.answer_when_done);
  }
}

}  // namespace spw::cache
