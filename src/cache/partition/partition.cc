#include "cache/partition/partition.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

namespace {

uint32_t reserve_high_of(uint32_t frames, const Options& options) {
  uint64_t by_bytes = std::max<uint64_t>(options.reserve_bytes_max >> options.block_shift, 1);
  uint64_t by_share = std::max<uint32_t>(frames / kReserveShare, 1);
  return static_cast<uint32_t>(std::min({by_bytes, by_share, uint64_t{options.reserve_blocks_max}}));
}

// Nothing else notices parked blocks than a fault at their own address.
uint32_t parked_max_of(uint32_t frames, const Commons& commons) {
  if (!commons.placement.by_block) return 0;
  return static_cast<uint32_t>(
      std::min<uint64_t>(kParkedBytesMax >> commons.options.block_shift, frames / kParkedShare));
}

}  // namespace

Partition::Partition(PartitionId id, Commons& commons, std::unique_ptr<Policy> policy)
    : commons_(commons),
      id_(id),
      first_frame_(commons.table.first_frame(id).value),
      frame_count_(commons.table.frames_of(id)),
      reserve_high_(reserve_high_of(frame_count_, commons.options)),
      run_blocks_max_(run_blocks_max(commons.options.block_shift)),
      ahead_max_(frame_count_ / kAheadShare),
      evict_batch_(
          static_cast<uint32_t>(std::clamp<size_t>(commons.frames.release_batch_max(), 1, reserve_high_))),
      parked_max_(parked_max_of(frame_count_, commons)),
      policy_(std::move(policy)),
      wants_touches_(policy_->wants_touches()),
      on_offer_(frame_count_),
      reserve_(kReserveSlack * reserve_high_),
      io_(commons.options.queue_depth),
      limit_(frame_count_),
      free_count_(frame_count_) {
  free_.reserve(frame_count_);
  victims_.reserve(std::max<size_t>(evict_batch_, kGroupBlocks));
}

bool Partition::serve(Request& request) {
  if (io_.busy()) reap();
  if (wants_touches_ && touches_.bell_rang()) learn_touches();
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
      serve_flush(request);
      return true;
    case Wish::kCloseStore:
      serve_close_store(request);
      return true;
    case Wish::kTrim:
      serve_trim(request);
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
  commons_.written_stores.remove(request.store);
  noted_store_ = nullptr;
  request.answer = Answer::kDone;
}

// What a client needs in order to wait for the queues without being the owner.
void Partition::describe_wait(Request& request) {
  request.progress = progress_.snapshot();
  request.queue = io_.queue_to_wait_on();
  request.more_than_one_queue = io_.several_queues_busy();
  request.status = write_error_;
}

bool Partition::serve_pin(Request& request) {
  request.was_ahead = request.was_clean = false;
  FrameId present = commons_.table.find(request.block);
  if (present != kNoFrame && pin_present(request, present)) return true;
  if (commons_.placement.by_block && serve_zero_run(request)) return true;
  uint32_t frame = take_frame();
  if (frame == kNone) {
    request.answer = Answer::kNoFrame;
    describe_wait(request);
    return true;
  }
  insert(frame, request.block, 1, false);
  tell_of_fill(request.block, request.access);
  request.frame = global(frame);
  request.answer = Answer::kFill;
  return !(commons_.owner_fills && start_owner_fill(request));
}

// The block is in the table. False if it is not any more.
bool Partition::pin_present(Request& request, FrameId frame) {
  AtomicPinWord& pin_word = commons_.table.word(frame);
  PinWord word = pin_word.load_acquire();
  request.frame = frame;
  for (;;) {
    switch (word.state()) {
      case FrameState::kResident:
        if (!pin_word.cas_acquire(word, word.pinned(request.access != Access::kRead))) continue;
        if (word.ahead()) ahead_used();
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
        if (word.state() == FrameState::kFree) return false;
        request.answer = Answer::kFailed;
        return true;
      case FrameState::kFree:
        return false;
    }
  }
}

void Partition::drop_failed(FrameId frame) {
  AtomicPinWord& pin_word = commons_.table.word(frame);
  PinWord was = pin_word.load_acquire();
  if (was.state() != FrameState::kFailed || !pin_word.try_free_failed()) return;
  commons_.errors.drop(frame);
  remove(local(frame), was);
  release_victims();
  free_.push_back(local(frame));
  free_count_.fetch_add_relaxed(1);
  progress_.advance();
}

// ---- Frames ----

uint32_t Partition::take_frame() {
  const uint32_t used = used_frames(), limit = limit_.load_relaxed();
  if (used >= limit && evict_some(used - limit + evict_batch_) <= used - limit) return kNone;
  uint32_t frame;
  if (!free_.empty()) {
    frame = free_.back();
    free_.pop_back();
  } else {
    frame = fresh_++;
  }
  free_count_.fetch_sub_relaxed(1);
  peak_.store_relaxed(std::max(peak_.load_relaxed(), frame_count_ - free_count_.load_relaxed()));
  return frame;
}

void Partition::insert(uint32_t frame, BlockId block, uint64_t refs, bool ahead) {
  word(frame).store_release(PinWord::filling(block, refs, ahead));
  commons_.table.insert(block, global(frame));
  policy_->on_insert(frame, block);
}

void Partition::tell_of_fill(BlockId block, Access access) {
  Observer* observer = commons_.options.observer;
  if (!observer) [[likely]]
    return;
  const bool is_read = access != Access::kOverwrite && commons_.blocks.locate_for_fill(block).has_contents;
  is_read ? observer->came(block) : observer->ended(block, 1);
}

// The frame's word has just been freed; `was` is what it was.
void Partition::remove(uint32_t frame, PinWord was) {
  commons_.table.erase(was.block(), global(frame));
  policy_->on_remove(frame);
  on_offer_[frame] = 0;
  if (was.ahead()) ahead_used();
  victims_.push_back({global(frame), was.block()});
}

// Before any frame of theirs is filled again, and before the owner lets go.
void Partition::release_victims() {
  commons_.frames.release(victims_);
  victims_.clear();
}

FrameProbe::Verdict Partition::probe(uint32_t frame) {
  PinWord seen = word(frame).load_relaxed();
  if (on_offer_[frame] || !seen.is_droppable()) return Verdict::kBusy;
  if (!seen.referenced()) return Verdict::kEvictable;
  word(frame).clear_referenced();
  if (commons_.frames.notes_uses()) commons_.frames.watch_for_use({global(frame), seen.block()});
  return Verdict::kReferenced;
}

uint32_t Partition::evict_one() {
  if (reserve_.size() + in_writing_ <= reserve_high_ / 2) refill_reserve();
  // A candidate that was used since it was chosen is spared, but not for ever: under pins that come and go all the
  // time every candidate has been used.
  uint32_t pardons = reserve_high_;
  for (uint32_t tries = 0; tries < kReserveSlack * reserve_high_; ++tries) {
    if (reserve_.size() == 0) refill_reserve();
    if (reserve_.size() == 0) return kNone;
    uint32_t frame = reserve_.pop();
    PinWord was = word(frame).load_relaxed();
    if (!on_offer_[frame] || was.writing()) continue;  // gone; or dirtied again, and back when it is written
    bool spared = was.referenced() && pardons > 0;
    if (!spared && word(frame).try_free(false, &was)) {
      remove(frame, was);
      count(Counter::evictions);
      if (commons_.options.observer) [[unlikely]]
        commons_.options.observer->left(was.block());
      return frame;
    }
    if (spared) --pardons;
    on_offer_[frame] = 0;
    policy_->on_keep(frame);
  }
  return kNone;
}

// Evicts up to `wanted` blocks, whose memory is released together; says how many frames that made free.
uint32_t Partition::evict_some(uint32_t wanted) {
  uint32_t evicted = 0;
  while (evicted < wanted) {
    uint32_t frame = evict_one();
    if (frame == kNone && !parked_.empty()) {
      unpark(parked_.front().resident.frame);
      continue;
    }
    if (frame == kNone) break;
    free_.push_back(frame);
    ++evicted;
  }
  release_victims();
  free_count_.fetch_add_relaxed(evicted);
  return evicted;
}

// In steps, so that misses are served in between. kBlocked: not all that should go can go before something has finished.
void Partition::serve_trim(Request& request) {
  const uint32_t used = used_frames();
  const auto target = static_cast<uint32_t>(request.count);
  const uint32_t wanted = used > target ? std::min(used - target, evict_batch_) : 0;
  const uint32_t evicted = wanted > 0 ? evict_some(wanted) : 0;
  request.answer = evicted < wanted          ? Answer::kBlocked
                   : evicted == evict_batch_ ? Answer::kMore
                                             : Answer::kDone;
  if (evicted < wanted) describe_wait(request);
}

void Partition::learn_touches() {
  uint32_t lost = touches_.drain([this](uint32_t frame) { policy_->on_touch(frame); });
  if (lost > 0) count(Counter::touch_events_dropped, lost);
}

void Partition::refill_reserve() {
  if (wants_touches_) learn_touches();
  policy_->on_limit(limit_.load_relaxed());
  bool may_write = may_write_now();
  uint32_t looks_left = frame_count_ + reserve_high_;
  while (reserve_.size() + in_writing_ < reserve_high_ && looks_left-- > 0 && !reserve_.full()) {
    uint32_t frame = policy_->next_candidate(*this);
    if (frame == kNoCandidate) break;
    on_offer_[frame] = 1;
    if (!word(frame).load_relaxed().dirty()) {
      reserve_.push(frame);
      continue;
    }
    Started started = may_write ? start_writeback(frame, false) : Started::kNo;
    if (started == Started::kYes) continue;
    on_offer_[frame] = 0;
    policy_->on_keep(frame);
    if (started == Started::kNoOperation) break;  // all are in flight, so some will be free soon
  }
  submit_writebacks();
}

// ---- Completions ----

bool Partition::reap() {
  PartitionIo::Done done[PartitionIo::kReapMax];
  size_t finished = 0;
  for (;;) {
    size_t got = io_.reap(done);
    for (size_t i = 0; i < got; ++i) {
      IoOp* op = done[i].op;
      if (op->kind == IoOp::Kind::kWriteback)
        finish_writeback(*op, done[i].error);
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

void Partition::drain() {
  io_.submit();
  reap();
  while (io_.busy()) {
    constexpr uint64_t kWaitNs = 10'000'000;
    if (store::IoQueue* queue = io_.queue_to_wait_on()) queue->wait(kWaitNs);
    io_.submit();
    reap();
  }
}

// ---- Telling ----

uint64_t Partition::metadata_bytes() const {
  return sizeof(*this) + policy_->metadata_bytes() + free_.capacity() * sizeof(uint32_t) + on_offer_.size() +
         reserve_.metadata_bytes() + io_.metadata_bytes();
}

void Partition::check_invariants() {
  std::vector<uint8_t> is_free(frame_count_);
  for (uint32_t frame : free_) {
    SPW_CHECK(frame < fresh_ && !is_free[frame]);
    is_free[frame] = 1;
  }
  std::vector<uint8_t> may_be_offered(frame_count_);
  uint32_t ahead = 0, writing_on_offer = 0, parked = 0;
  for (uint32_t frame = 0; frame < frame_count_; ++frame) {
    PinWord seen = word(frame).load_acquire();
    bool unused = is_free[frame] || frame >= fresh_;
    SPW_CHECK(unused == (seen.state() == FrameState::kFree));
    SPW_CHECK(!seen.writing() || seen.state() == FrameState::kResident);
    SPW_CHECK(!seen.parked() || seen.state() == FrameState::kFilling);
    parked += seen.parked();
    SPW_CHECK(!(unused && on_offer_[frame]));
    may_be_offered[frame] = !unused && !on_offer_[frame];
    ahead += seen.ahead();
    writing_on_offer += seen.writing() && on_offer_[frame];
  }
  SPW_CHECK(free_count_.load_relaxed() == free_.size() + (frame_count_ - fresh_));
  SPW_CHECK(ahead_unused_.load_relaxed() == ahead);
  SPW_CHECK(in_writing_ == writing_on_offer);
  SPW_CHECK(parked_.size() == parked);
  policy_->check_invariants(may_be_offered);
}

}  // namespace spw::cache
