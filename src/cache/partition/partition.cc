#include "cache/partition/partition.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "platform/time.h"

namespace spw::cache {

namespace {

// Nothing else notices parked blocks than a fault at their own address.
uint32_t parked_max_of(uint32_t frames, const PartitionContext& context) {
  if (!context.has_blocks_in_place()) return 0;
  return static_cast<uint32_t>(
      std::min<uint64_t>(kParkedBytesMax >> context.options.block_shift, frames / kParkedShare));
}

}  // namespace

Partition::Partition(PartitionId id, PartitionContext& context, std::unique_ptr<Policy> policy)
    : context_(context),
      id_(id),
      io_(context.options.queue_depth),
      writeback_(context_, io_),
      organisation_(make_organisation(context, id, writeback_, std::move(policy))),
      run_blocks_max_(run_blocks_max(context.options.block_shift)),
      ahead_max_(organisation_->frame_count() / kAheadShare),
      parked_max_(parked_max_of(organisation_->frame_count(), context)) {}

bool Partition::serve(Request& request) {
  if (io_.busy()) reap();
  organisation_->catch_up();
  switch (request.wish) {
    case Wish::kPin:
      return serve_pin(request);
    case Wish::kDropFailed:
      drop_failed(request.frame);
      request.answer = Answer::kDone;
      return true;
    case Wish::kReap:
      request.answer = Answer::kDone;
      describe_wait(request);
      return true;
    case Wish::kClaim:
      serve_claim(request);
      return true;
    case Wish::kUnpark:
      unpark(request.frame);
      request.answer = Answer::kDone;
      return true;
    case Wish::kPrefetch:
      serve_prefetch(request);
      return true;
    case Wish::kZerosAhead:
      serve_zeros_ahead(request);
      return true;
    case Wish::kAdopt:
      serve_adopt(request);
      return true;
    case Wish::kDiscard:
      serve_discard(request);
      return true;
    case Wish::kFlush:
    case Wish::kBeginFlush:
      serve_flush(request);
      return true;
    case Wish::kAwaitWrites:
      serve_await_writes(request);
      return true;
    case Wish::kTakeOut:
      serve_take_out(request);
      return true;
    case Wish::kCloseStore:
      serve_close_store(request);
      return true;
    case Wish::kTrim:
      serve_trim(request);
      return true;
    case Wish::kCheck:
      check_invariants();
      request.answer = Answer::kDone;
      return true;
  }
  return true;
}

void Partition::serve_close_store(Request& request) {
  if (io_.store_busy(*request.store)) {
    request.answer = Answer::kBlocked;
    describe_wait(request);
    return;
  }
  progress_.drain_queue_waiters();
  io_.close_store(*request.store);
  context_.written_stores.remove(request.store);
  writeback_.forget_store();
  request.answer = Answer::kDone;
}

// What a client needs in order to wait for the queues without being the owner.
void Partition::describe_wait(Request& request) {
  request.progress = progress_.snapshot();
  request.queue = io_.queue_to_wait_on();
  request.more_than_one_queue = io_.several_queues_busy();
  request.has_progressed = io_.has_done_here();
  request.status = writeback_.last_write();
}

bool Partition::serve_pin(Request& request) {
  request.was_ahead = request.was_clean = false;
  request.backing.reset();
  for (;;) {
    const FrameId present = context_.directory.find(request.block);
    if (present != kNoFrame && pin_present(request, present)) return true;
    if (context_.placement.has_address(request.block) && serve_zero_run(request)) return true;
    Organisation::Taken taken = take(request.block, 1, false);
    if (taken.how == Organisation::Take::kNone && !organisation_->start_writes_for(request.block))
      taken = organisation_->take_from_afar(request.block, 1);
    if (taken.how == Organisation::Take::kPresent) continue;
    if (taken.how == Organisation::Take::kNone) {
      request.answer = Answer::kNoFrame;
      describe_wait(request);
      return true;
    }
    request.frame = taken.frame;
    request.answer = Answer::kFill;
    return !(context_.owner_fills && start_owner_fill(request));
  }
}

// The block is in the table. False if it is not any more.
bool Partition::pin_present(Request& request, FrameId frame) {
  AtomicPinWord& pin_word = word(frame);
  PinWord word = pin_word.load_acquire();
  request.frame = frame;
  while (word.holds(request.block)) {
    switch (word.state()) {
      case FrameState::kResident:
        if (!pin_word.cas_acquire(word, word.pinned(request.access != Access::kRead))) continue;
        if (word.ahead()) organisation_->ahead_used();
        request.was_ahead = word.ahead();
        request.was_clean = request.access != Access::kRead && !word.dirty();
        request.answer = Answer::kPinned;
        return true;
      case FrameState::kFilling:
        if (!pin_word.cas_acquire(word, word.joined())) continue;
        request.answer = Answer::kJoined;
        return true;
      case FrameState::kFailed:
        drop_failed(frame);
        word = pin_word.load_acquire();
        if (!word.holds(request.block)) return false;
        request.answer = Answer::kFailed;
        return true;
      case FrameState::kFree:
        return false;
    }
  }
  return false;
}

void Partition::drop_failed(FrameId frame) {
  const bool is_dropped = organisation_->drop_failed(frame);
  if (is_dropped) context_.errors.drop(frame);
  organisation_->release_dropped();
  if (is_dropped) progress_.advance();
}

// ---- Frames ----

// What is parked may go where nothing else can.
Organisation::Taken Partition::take(BlockId block, uint64_t refs, bool ahead) {
  Organisation::Taken taken = organisation_->take(block, refs, ahead);
  while (taken.how == Organisation::Take::kNone && !parked_.empty()) {
    unpark(parked_.front().resident.frame);
    taken = organisation_->take(block, refs, ahead);
  }
  return taken;
}

void Partition::evict(EvictionBatch& batch) {
  const uint32_t starts_max = batch.starts_left;
  organisation_->evict(batch);
  while (batch.evicted < batch.wanted && !batch.has_begun_all() && !parked_.empty()) {
    unpark(parked_.front().resident.frame);
    batch.starts_left = starts_max;
    organisation_->evict(batch);
  }
}

// In steps, so that misses are served in between. kBlocked: not all
// that should go can go before something has finished.
void Partition::serve_trim(Request& request) {
  const uint32_t used = organisation_->used_frames();
  const uint32_t most = std::max<uint32_t>(organisation_->evict_batch(), kGroupBlocks);
  const auto target = static_cast<uint32_t>(request.count);
  EvictionBatch batch{.wanted = used > target ? std::min(used - target, most) : 0,
                      .starts_left = kTrimStartsMax};
  if (batch.wanted > 0) evict(batch);
  const bool is_blocked = batch.evicted < batch.wanted && !batch.has_begun_all();
  request.answer = is_blocked                      ? Answer::kBlocked
                   : used - batch.evicted > target ? Answer::kMore
                                                   : Answer::kDone;
  if (is_blocked) describe_wait(request);
}

// ---- Completions ----

bool Partition::reap() {
  PartitionIo::Done done[PartitionIo::kReapMax];
  size_t finished = 0;
  for (;;) {
    size_t got = io_.reap(done);
    for (size_t i = 0; i < got; ++i) {
      IoOp* op = done[i].op;
      if (i + 1 < got) prefetch(*done[i + 1].op);
      if (op->kind == IoOp::Kind::kWriteback)
        writeback_.finish(*organisation_, *op, done[i].error);
      else
        finish_fill(*op, done[i].error);
      io_.put_back(op);
    }
    finished += got;
    if (got < PartitionIo::kReapMax) break;
  }
  if (finished > 0) progress_.advance();
  return finished > 0;
}

// What the end of the operation will look at.
void Partition::prefetch(const IoOp& op) const {
  for (uint32_t i = 0; i < op.count; ++i) {
    context_.directory.prefetch_word(op.frames[i]);
    context_.directory.prefetch_slot(op.block(i));
  }
}

void Partition::drain() {
  io_.submit();
  kick();
  reap();
  while (io_.busy()) {
    constexpr uint64_t kWaitNs = 10'000'000;
    if (store::IoQueue* queue = io_.queue_to_wait_on()) queue->wait(kWaitNs);
    io_.submit();
    kick();
    reap();
  }
}

void Partition::kick() {
  Kicks kicks;
  io_.collect(&kicks);
  io_.kick(kicks);
}

// ---- Telling ----

uint64_t Partition::metadata_bytes() const {
  return sizeof(*this) + organisation_->metadata_bytes() + io_.metadata_bytes();
}

void Partition::check_invariants() {
  uint32_t ahead = 0, parked = 0;
  for (uint32_t i = 0; i < organisation_->frame_count(); ++i) {
    const PinWord seen = word(context_.directory.shares().first(id_) + i).load_acquire();
    SPW_CHECK(!seen.writing() || seen.state() == FrameState::kResident || seen.is_lifted());
    SPW_CHECK(!seen.parked() || seen.state() == FrameState::kFilling);
    parked += seen.parked() && !seen.is_lifted();
    ahead += seen.ahead();
  }
  SPW_CHECK(organisation_->ahead_unused() == ahead);
  SPW_CHECK(parked_.size() == parked);
  organisation_->check_invariants();
}

}  // namespace spw::cache
