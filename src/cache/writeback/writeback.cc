#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/zeros.h"
#include "cache/partition/organisation.h"
#include "cache/writeback/run.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

namespace {

constexpr uint64_t kBackoffFirstNs = 10'000'000;
constexpr uint64_t kBackoffMaxNs = 1'000'000'000;

}  // namespace

bool Writeback::may_write_now() const {
  return last_write_.is_ok() || platform::monotonic_ns() >= retry_at_ns_;
}

Writeback::Writeback(PartitionContext& context, PartitionIo& io)
    : context_(context), io_(io), run_blocks_max_(run_blocks_max(context.options.block_shift)) {
  reserve_for_lifting();
}

Writeback::~Writeback() = default;

Writeback::Started Writeback::start(Organisation& told, FrameId frame, bool pinned_too,
                                    EvictionBatch* batch) {
  IoOp* op = io_.take();
  if (!op) return Started::kNoOperation;
  if (!word(frame).try_begin_writing(pinned_too)) {
    io_.put_back(op);
    return Started::kNo;
  }
  BlockId block = word(frame).load_relaxed().block();
  context_.directory.prefetch_slot(block + 1);
  if (block.value > 0) context_.directory.prefetch_slot(BlockId(block.value - 1));
  Backing backing = context_.blocks.locate_for_writeback(block);
  if (backing.store == nullptr) {
    io_.put_back(op);
    clean_freed(frame, block);
    return Started::kNo;
  }
  const uint64_t group_first = group_of(block) << kGroupShift;
  const auto place = static_cast<uint32_t>(block.value - group_first);
  const bool is_readable = context_.frames.is_readable(block);
  Run run{told, batch, group_first, place, place + 1, backing, is_readable, {}};
  run.frames[run.begin] = frame;
  const uint32_t blocks_max = take_staging(*op, block, is_readable);
  while (run.end < kGroupBlocks && run.count() < blocks_max && extend_run(run, true)) {
  }
  while (run.begin > 0 && run.count() < blocks_max && extend_run(run, false)) {
  }
  const bool is_lifted = may_lift(*op, run);
  if (batch) batch->lifts = is_lifted;
  for (uint32_t at = run.begin; at < run.end; ++at) told.note_writing(run.frames[at], batch);
  if (batch) batch->lifts = false;
  if (is_lifted)
    wait_to_be_lifted(*op, run);
  else
    send(*op, run);
  return Started::kYes;
}

void Writeback::send(IoOp& op, Run& run) {
  Resident residents[kGroupBlocks];
  for (uint32_t i = 0; i < run.count(); ++i) residents[i] = run.resident(run.begin + i);
  context_.frames.begin_writeback({residents, run.count()});
  if (op.staging)
    copy_run(op, run);
  else if (!run.is_readable)
    context_.frames.let_read({residents, run.count()});
  if (context_.placement.has_address(residents[0].block)) {
    leave_zeros_out(run);
    leave_unstored_out(run);
  }
  if (run.count() > 0) return issue_run(op, run);
  give_staging_back(op);
  io_.put_back(&op);
}

// How many blocks may be written at a time. One, where buffers for runs are all in use: for single blocks there are
// more.
uint32_t Writeback::take_staging(IoOp& op, BlockId block, bool is_readable) const {
  if (is_readable && !context_.frames.is_written_from_staging(block)) return run_blocks_max_;
  for (const auto kind : {FrameSource::Staging::kRun, FrameSource::Staging::kBlock}) {
    op.staging_kind = kind;
    op.staging = context_.frames.take_staging(kind);
    if (op.staging) return kind == FrameSource::Staging::kRun ? run_blocks_max_ : 1;
  }
  return run_blocks_max_;
}

void Writeback::give_staging_back(IoOp& op) const {
  if (op.staging) context_.frames.give_back(op.staging_kind, std::exchange(op.staging, nullptr));
}

// The block's range was freed while a pin still held it: nobody wants its contents. It is clean from now on, and the
// range may be handed out again, so that the program's stores to it have to be noticed. If it has been meanwhile, one
// may have come before that: the range is live before its owner stores to it, so who finds it not live even after
// begin_writeback() has missed nothing.
void Writeback::clean_freed(FrameId frame, BlockId block) {
  const Resident resident{frame, block};
  context_.frames.begin_writeback({&resident, 1});
  const bool is_wanted = context_.blocks.locate_for_writeback(block).store != nullptr;
  context_.frames.end_writeback(resident);
  if (is_wanted)
    word(frame).end_writing_dirty();
  else
    word(frame).end_writing();
}

// Takes the neighbour behind (forward) or before the run in, if it is dirty, free
// to go and next to it on the store. Not a pinned one: that stays dirty, and a
// flush that comes to it would write it again, and all of its neighbours with it.
bool Writeback::extend_run(Run& run, bool forward) {
  uint32_t place = forward ? run.end : run.begin - 1;
  BlockId block(run.group_first + place);
  FrameId frame = context_.directory.find(block);
  if (frame == kNoFrame) return false;
  AtomicPinWord& pin_word = context_.directory.word(frame);
  PinWord seen = pin_word.load_relaxed();
  if (!seen.holds(block) || !seen.dirty() || seen.writing() || seen.refs() > 0) return false;
  if (run.batch && !run.told.is_written_along(frame, seen)) return false;
  Backing backing = context_.blocks.locate_for_writeback(block);
  uint64_t bytes = context_.block_bytes();
  bool adjoins = forward ? backing.offset_bytes == run.first.offset_bytes + run.count() * bytes
                         : backing.offset_bytes + bytes == run.first.offset_bytes;
  if (backing.store != run.first.store || !adjoins || !pin_word.try_begin_writing(false)) return false;
  if (context_.frames.is_readable(block) != run.is_readable) {
    pin_word.end_writing_dirty();
    return false;
  }
  run.frames[place] = frame;
  if (forward) {
    ++run.end;
  } else {
    --run.begin;
    run.first = backing;
  }
  return true;
}

// Blocks at the ends of the run that are new to the store and all zero need not be written: they are clean as they are.
// The run is protected from unnoticed stores already, so one that comes now makes its block dirty again (a function of
// its own, like submit(), so that the thread sanitizer can be told).
[[gnu::noinline]] void Writeback::leave_zeros_out(Run& run) {
  auto left_out = [&](uint32_t place) {
    const BlockId block(run.group_first + place);
    if (context_.blocks.locate_for_fill(block).has_contents ||
        !is_all_zero(contents(run, place), context_.block_bytes()))
      return false;
    settle_unwritten(run, place);
    count(Counter::zeros_left_out);
    return true;
  };
  while (run.count() > 0 && left_out(run.end - 1)) --run.end;
  while (run.count() > 0 && left_out(run.begin)) {
    ++run.begin;
    run.first.offset_bytes += context_.block_bytes();
  }
}

// It is clean as it is.
void Writeback::settle_unwritten(const Run& run, uint32_t place) {
  const auto [frame, block] = run.resident(place);
  context_.frames.end_writeback({frame, block});
  context_.directory.word(frame).end_writing();
  run.told.note_settled(frame);
  context_.blocks.cleaned(block, {&frame, 1});
}

// Nor need blocks that came dirty and were not stored to, and must not (fill_sums.h). The first of them that is not at
// the run's beginning ends it: what is behind that is dirty as before. (A function of its own, as leave_zeros_out().)
[[gnu::noinline]] void Writeback::leave_unstored_out(Run& run) {
  for (uint32_t place = run.begin; place < run.end; ++place) {
    const FrameId frame = run.frames[place];
    if (!word(frame).load_relaxed().summed()) continue;
    if (!context_.fill_sums.matches(frame, contents(run, place))) {
      (void)word(frame).clear_summed();
      continue;
    }
    settle_unwritten(run, place);
    count(Counter::unstored_left_out);
    if (place > run.begin) {
      for (uint32_t behind = place + 1; behind < run.end; ++behind) leave_dirty(run, behind);
      run.end = place;
      return;
    }
    ++run.begin;
    run.first.offset_bytes += context_.block_bytes();
  }
}

void Writeback::leave_dirty(const Run& run, uint32_t place) {
  const FrameId frame = run.frames[place];
  context_.frames.end_writeback(run.resident(place));
  word(frame).end_writing_dirty();
  run.told.note_settled(frame);
}

namespace {
// On its way until it is submitted. What is behind the first page, the processor fetches by itself.
void prefetch_page(const std::byte* page) {
  constexpr size_t kLineBytes = 64;
  for (size_t at = 0; at < kMmuPageBytes; at += kLineBytes) __builtin_prefetch(page + at);
}
}  // namespace

void Writeback::issue_run(IoOp& op, const Run& run) {
  op.kind = IoOp::Kind::kWriteback;
  op.store = run.first.store;
  op.first = BlockId(run.group_first + run.begin);
  op.count = run.count();
  op.request.op = store::Op::kWrite;
  op.request.offset_bytes = run.first.offset_bytes;
  for (uint32_t i = 0; i < op.count; ++i) {
    op.frames[i] = run.frames[run.begin + i];
    op.append_segment(contents(run, run.begin + i), context_.block_bytes());
    if (word(op.frames[i]).load_relaxed().is_lifted()) op.lifted |= uint64_t{1} << i;
  }
  if (!op.staging && op.store->looks_at_contents())
    prefetch_page(static_cast<const std::byte*>(op.request.segments[0].iov_base));
  if (noted_store_ != op.store) context_.written_stores.add(noted_store_ = op.store);
  io_.start(&op);
}

// A copy sees a store that comes now as the device would (a function of its own, like submit()).
[[gnu::noinline]] void Writeback::copy_run(IoOp& op, Run& run) const {
  run.copy = op.staging;
  run.copied_from = run.begin;
  for (uint32_t place = run.begin; place < run.end; ++place) {
    const Resident resident = run.resident(place);
    if (run.is_readable)
      std::memcpy(contents(run, place), context_.data(resident), context_.block_bytes());
    else
      context_.frames.copy_out(resident, contents(run, place));
  }
}

std::byte* Writeback::contents(const Run& run, uint32_t place) const {
  if (run.copy != nullptr) return run.copy + (place - run.copied_from) * context_.block_bytes();
  return context_.data(run.resident(place));
}

// A function of its own, so that the thread sanitizer can be told that stores to a block that is being written are
// meant to happen (they make it dirty again, so it is written once more).
[[gnu::noinline]] void Writeback::submit() {
  if (!waiting_.empty()) lift_waiting();
  io_.submit();
}

void Writeback::finish(Organisation& told, IoOp& op, int error) {
  give_staging_back(op);
  if (error != 0)
    note_write_error(op, error);
  else
    telemetry::note_event(telemetry::TraceEvent::kWritten, op.first.value, op.count);
  if (error == 0 && !last_write_.is_ok()) {
    last_write_ = Status::ok();
    retry_at_ns_ = backoff_ns_ = 0;
  }
  for (uint32_t i = 0; i < op.count; ++i) {
    const FrameId frame = op.frames[i];
    context_.frames.end_writeback({op.frames[i], op.block(i)});
    if ((op.lifted >> i & 1) != 0) end_lifted(op, i, error);
    if (error == 0) {
      context_.blocks.written_back(op.block(i), op.store);
      word(frame).end_writing();
      count(Counter::writebacks);
    } else {
      word(frame).end_writing_dirty();
    }
    told.note_settled(frame);
  }
  if (error == 0) context_.blocks.cleaned(op.first, {op.frames, op.count});
}

void Writeback::note_write_error(const IoOp& op, int error) {
  telemetry::note_event(telemetry::TraceEvent::kFailed, op.first.value, static_cast<uint64_t>(error));
  last_write_ = Status(error, "cannot write block " + std::to_string(op.first.value) + " to " +
                                  op.store->describe_at(op.request.offset_bytes) + " at offset " +
                                  std::to_string(op.request.offset_bytes));
  backoff_ns_ = backoff_ns_ == 0 ? kBackoffFirstNs : std::min(2 * backoff_ns_, kBackoffMaxNs);
  retry_at_ns_ = platform::monotonic_ns() + backoff_ns_;
  if (op.sequence < failed_sequence_) return;
  failed_sequence_ = op.sequence;
  failure_ = last_write_;
}

}  // namespace spw::cache
