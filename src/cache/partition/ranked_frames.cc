#include "cache/partition/ranked_frames.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "base/check.h"
#include "cache/writeback/writeback.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

namespace {

// Blocks that are lifted are not in place while they are in the reserve: a use of them is a fault.
uint32_t reserve_high_of(uint32_t frames, const PartitionContext& context) {
  const Options& options = context.options;
  uint64_t by_bytes = std::max<uint64_t>(options.reserve_bytes_max >> options.block_shift, 1);
  uint64_t by_share = std::max<uint32_t>(frames / kReserveShare, 1);
  const uint32_t most = context.frames.lifts(BlockId(0)) ? kLiftedReserveMax : options.reserve_blocks_max;
  return static_cast<uint32_t>(std::min({by_bytes, by_share, uint64_t{most}}));
}

// A small partition would be emptied by a group, and requests for large blocks gain nothing from lying near each other.
bool can_sweep_groups(uint32_t reserve_high, unsigned block_shift) {
  return reserve_high >= 2 * kGroupBlocks && uint64_t{kGroupBlocks} << block_shift <= kSweptBytesMax;
}

}  // namespace

RankedFrames::RankedFrames(PartitionContext& context, PartitionId id, Writeback& writeback,
                           std::unique_ptr<Policy> policy)
    : Organisation(context, id, writeback),
      reserve_high_(reserve_high_of(frame_count_, context)),
      evict_batch_(
          static_cast<uint32_t>(std::clamp<size_t>(context.frames.release_batch_max(), 1, reserve_high_))),
      sweeps_groups_(can_sweep_groups(reserve_high_, context.options.block_shift)),
      policy_(std::move(policy)),
      wants_touches_(policy_->wants_touches()),
      on_offer_(frame_count_),
      reserve_(kReserveSlack * reserve_high_) {
  free_.reserve(frame_count_);
  victims_.reserve(std::max<size_t>(evict_batch_, kGroupBlocks));
}

void RankedFrames::catch_up() {
  if (wants_touches_ && touches_.bell_rang()) learn_touches();
}

Organisation::Taken RankedFrames::take(BlockId block, uint64_t refs, bool ahead) {
  const uint32_t frame = take_frame();
  if (frame == kNone) return {Take::kNone};
  if (ahead) ahead_unused_.fetch_add_relaxed(1);
  hold(frame, block, refs, ahead);
  return {Take::kTaken, global(frame)};
}

void RankedFrames::hold(uint32_t frame, BlockId block, uint64_t refs, bool ahead) {
  word(frame).store_release(PinWord::filling(block, refs, ahead));
  context_.directory.ranked()->insert(block, global(frame));
  policy_->on_insert(frame, block);
}

uint32_t RankedFrames::take_run(BlockId first, uint32_t count, FrameId* frames) {
  const uint32_t most = std::min(count, run_max());
  uint32_t absent = 0;
  while (absent < most && context_.directory.find(first + absent) == kNoFrame) ++absent;
  make_room(absent);
  const uint32_t taken = std::min(absent, free_frames());
  // Frames that lie side by side come in that order, so that the run is few pieces to the device.
  std::sort(free_.end() - std::min<ptrdiff_t>(taken, std::ssize(free_)), free_.end(), std::greater<>());
  for (uint32_t i = 0; i < taken; ++i) {
    const uint32_t frame = frame_of_room();
    hold(frame, first + i, 1, false);
    frames[i] = global(frame);
  }
  return taken;
}

void RankedFrames::make_room(uint32_t frames) {
  const uint32_t wanted = used_frames() + frames;
  if (frames == 0 || wanted <= limit()) return;
  const uint32_t lacking = wanted - limit();
  EvictionBatch batch{.wanted = std::max(lacking, evict_batch_), .starts_left = lacking + kDemandStartsMax};
  evict(batch);
}

uint32_t RankedFrames::take_frame() {
  if (const uint32_t used = used_frames(), most = limit(); used >= most) {
    const uint32_t above = used - most;
    EvictionBatch batch{.wanted = above + evict_batch_, .starts_left = above + kDemandStartsMax};
    evict(batch);
    if (batch.evicted <= above) return kNone;
  }
  return frame_of_room();
}

// One that nobody has. There is one where fewer are in use than the partition has.
uint32_t RankedFrames::frame_of_room() {
  uint32_t frame;
  if (!free_.empty()) {
    frame = free_.back();
    free_.pop_back();
  } else {
    frame = fresh_++;
  }
  note_taken();
  return frame;
}

// The frame's word has just been freed; `was` is what it was.
void RankedFrames::remove(uint32_t frame, PinWord was) {
  context_.directory.ranked()->erase(was.block(), global(frame));
  policy_->on_remove(frame, was.block());
  on_offer_[frame] = 0;
  if (was.ahead()) ahead_used();
  victims_.push_back({global(frame), was.block()});
}

void RankedFrames::free_later(uint32_t frame) {
  free_.push_back(frame);
  note_freed(1);
}

bool RankedFrames::drop(FrameId frame, BlockId block, Drop which, PinWord* was) {
  if (!Organisation::word(frame).load_relaxed().holds(block) ||
      !Organisation::word(frame).try_free(which == Drop::kAny, was))
    return false;
  remove(local(frame), *was);
  free_later(local(frame));
  return true;
}

bool RankedFrames::drop_failed(FrameId frame) {
  const PinWord was = Organisation::word(frame).load_acquire();
  if (was.state() != FrameState::kFailed || !Organisation::word(frame).try_free_failed()) return false;
  remove(local(frame), was);
  free_later(local(frame));
  return true;
}

// Before any frame of theirs is filled again, and before the owner lets go.
void RankedFrames::release_dropped() {
  context_.frames.release(victims_);
  victims_.clear();
}

FrameProbe::Verdict RankedFrames::probe(uint32_t frame) {
  PinWord seen = word(frame).load_relaxed();
  if (on_offer_[frame] || !seen.is_droppable()) return Verdict::kBusy;
  if (!seen.referenced()) return Verdict::kEvictable;
  word(frame).clear_referenced();
  if (context_.frames.notes_uses()) context_.frames.watch_for_use({global(frame), seen.block()});
  return Verdict::kReferenced;
}

// What remove() reads and changes: of one that comes soon what its block leads to, by its word, which came a few
// victims before that.
void RankedFrames::prefetch_victims() {
  constexpr uint32_t kNext = 3, kBehind = 6;
  if (reserve_.size() > kNext) {
    const BlockId block = word(reserve_.at(kNext)).load_relaxed().block();
    context_.directory.prefetch_slot(block);
    policy_->prefetch_block(block);
  }
  if (reserve_.size() > kBehind) {
    prefetch(reserve_.at(kBehind));
    policy_->prefetch_frame(reserve_.at(kBehind));
  }
}

// The steps of an eviction. Victims are taken again in the order in which they went: frames of neighbours that came in
// together lie side by side, and go on doing so, which makes requests of few segments.
void RankedFrames::evict(EvictionBatch& batch) {
  const uint32_t evicted_before = batch.evicted;
  while (batch.evicted < batch.wanted && (batch.starts_left > 0 || batch.evicted == evicted_before)) {
    // 1. Choose candidates, ahead of need: half of the reserve is gone, with what is being written for it.
    // 2. Write the dirty ones; they enter the reserve when they are written (note_settled).
    if (reserve_.size() + in_writing_ <= reserve_high_ / 2) choose_candidates(batch);
    // 3. Take the first clean one that nobody has used meanwhile, by a compare-and-swap of its pin word to `free`.
    PinWord was;
    const uint32_t frame = lock_clean(batch, &was);
    if (frame == kNone) break;
    // 4. Remove it from the table and from the policy.
    remove(frame, was);
    context_.tell_left(was.block());
    free_.push_back(frame);
    ++batch.evicted;
  }
  // 5. Free the memory of all of them together, and then the frames.
  const uint32_t evicted = batch.evicted - evicted_before;
  note_evicted(evicted);
  std::reverse(free_.end() - evicted, free_.end());
  release_dropped();
  note_freed(evicted);
}

// The last so many victims. The time is asked for once.
void RankedFrames::note_evicted(uint32_t evicted) {
  if (evicted == 0) return;
  count(Counter::evictions, evicted);
  const uint64_t now_ns = platform::monotonic_ns();
  for (const Resident& victim : std::span(victims_).last(evicted))
    telemetry::note_event_at(now_ns, telemetry::TraceEvent::kEvicted, victim.block.value);
}

// Out of the reserve. A candidate that was used since it was chosen is spared, but not for ever: under pins that come
// and go all the time every candidate has been used.
uint32_t RankedFrames::lock_clean(EvictionBatch& batch, PinWord* was) {
  uint32_t pardons = reserve_high_;
  for (uint32_t tries = 0; tries < kReserveSlack * reserve_high_; ++tries) {
    if (reserve_.size() == 0) choose_candidates(batch);
    if (reserve_.size() == 0) return kNone;
    const uint32_t frame = reserve_.pop();
    prefetch_victims();
    *was = word(frame).load_relaxed();
    if (!on_offer_[frame] || was->writing()) continue;  // gone; or dirtied again, and back when it is written
    const bool spared = was->referenced() && pardons > 0;
    if (!spared && word(frame).try_free(false, was)) return frame;
    if (spared) --pardons;
    on_offer_[frame] = 0;
    policy_->on_keep(frame);
  }
  return kNone;
}

void RankedFrames::learn_touches() {
  uint32_t lost = touches_.drain([this](uint32_t frame) { policy_->on_touch(frame); });
  if (lost > 0) count(Counter::touch_events_dropped, lost);
}

// Until the reserve is full again, with what is being written for it.
void RankedFrames::choose_candidates(EvictionBatch& batch) {
  if (wants_touches_) learn_touches();
  policy_->on_limit(limit());
  policy_->on_passed(take_passed());
  const bool may_write = writeback_.may_write_now();
  const bool may_start = may_write && finish_sweep(batch);
  uint32_t looks_left = frame_count_ + reserve_high_;
  while (reserve_.size() + in_writing_ < reserve_high_ && looks_left-- > 0 && !reserve_.full() &&
         batch.starts_left > 0) {
    const uint32_t frame = policy_->next_candidate(*this);
    if (frame == kNoCandidate) break;
    on_offer_[frame] = 1;
    if (!word(frame).load_relaxed().dirty()) {
      reserve_.push(frame);
      continue;
    }
    const Writeback::Started started = may_start   ? write_candidate(batch, frame)
                                       : may_write ? Writeback::Started::kNoOperation
                                                   : Writeback::Started::kNo;
    if (started == Writeback::Started::kYes) continue;
    on_offer_[frame] = 0;
    policy_->on_keep(frame);
    if (started == Writeback::Started::kNoOperation) break;  // all are in flight, so some will be free soon
  }
  writeback_.submit();
}

// And the neighbours that go along; of a buffered file, the group.
Writeback::Started RankedFrames::write_candidate(EvictionBatch& batch, uint32_t frame) {
  const BlockId block = word(frame).load_relaxed().block();
  batch.sweeps =
      sweeps_groups_ && !context_.placement.has_address(block) && context_.blocks.is_buffered_file(block);
  if (batch.sweeps)
    for (uint64_t place = 0; place < kGroupBlocks; ++place)
      context_.directory.prefetch_slot(BlockId((group_of(block) << kGroupShift) + place));
  const Writeback::Started started = writeback_.start(*this, global(frame), false, &batch);
  if (started == Writeback::Started::kYes) {
    --batch.starts_left;
    if (batch.sweeps) {
      swept_group_ = group_of(block);
      swept_places_ = 0;
      (void)finish_sweep(batch);
    }
  }
  batch.sweeps = false;
  return started;
}

// Of the group that is swept the rest. False: there was no operation,
// or no start left, for some of it, which is the next eviction's.
bool RankedFrames::finish_sweep(EvictionBatch& batch) {
  const BlockId first(swept_group_ << kGroupShift);
  if (swept_places_ < kGroupBlocks && !context_.blocks.is_buffered_file(first)) swept_places_ = kGroupBlocks;
  batch.sweeps = true;
  while (swept_places_ < kGroupBlocks && batch.starts_left > 0 && sweep(batch, first + swept_places_))
    ++swept_places_;
  batch.sweeps = false;
  return swept_places_ == kGroupBlocks;
}

// False: there is no operation for it.
bool RankedFrames::sweep(EvictionBatch& batch, BlockId block) {
  const FrameId found = context_.directory.find(block);
  if (found == kNoFrame) return true;
  const uint32_t frame = local(found);
  const PinWord seen = word(frame).load_relaxed();
  if (on_offer_[frame] || !seen.dirty() || seen.writing() || seen.refs() > 0 || !goes_along(frame, batch))
    return true;
  on_offer_[frame] = 1;
  const Writeback::Started started = writeback_.start(*this, found, false, &batch);
  if (started == Writeback::Started::kYes) {
    word(frame).clear_referenced();
    --batch.starts_left;
    return true;
  }
  on_offer_[frame] = 0;
  policy_->on_keep(frame);
  return started != Writeback::Started::kNoOperation;
}

// Of a block that stays at its own address not every use is seen.
bool RankedFrames::goes_along(uint32_t frame, const EvictionBatch& batch) {
  const PinWord seen = word(frame).load_relaxed();
  const bool are_uses_unseen = !batch.lifts && context_.placement.is_placed({global(frame), seen.block()});
  if (are_uses_unseen || (seen.referenced() && !batch.sweeps)) return false;
  return policy_->goes_along(frame);
}

// Of a block at its own address the stores are not seen.
bool RankedFrames::is_written_along(FrameId frame, PinWord seen) const {
  return !seen.referenced() || !policy_->clears_ahead() ||
         !context_.placement.is_placed({frame, seen.block()});
}

// What is written for an eviction is written to go.
void RankedFrames::note_writing(FrameId frame, const EvictionBatch* batch) {
  uint8_t& is_on_offer = on_offer_[local(frame)];
  if (!is_on_offer && batch) {
    is_on_offer = goes_along(local(frame), *batch);
    if (is_on_offer && batch->sweeps) word(local(frame)).clear_referenced();
  }
  if (is_on_offer) ++in_writing_;
}

// A candidate whose write has ended is a clean one, or was used meanwhile.
void RankedFrames::note_settled(FrameId written) {
  const uint32_t frame = local(written);
  if (!on_offer_[frame]) return;
  --in_writing_;
  if (word(frame).load_relaxed().is_evictable() && !reserve_.full()) {
    reserve_.push(frame);
  } else {
    on_offer_[frame] = 0;
    policy_->on_keep(frame);
  }
}

uint64_t RankedFrames::metadata_bytes() const {
  return sizeof(*this) + policy_->metadata_bytes() + free_.capacity() * sizeof(uint32_t) + on_offer_.size() +
         reserve_.metadata_bytes();
}

void RankedFrames::check_invariants() const {
  std::vector<uint8_t> is_free(frame_count_);
  for (uint32_t frame : free_) {
    SPW_CHECK(frame < fresh_ && !is_free[frame]);
    is_free[frame] = 1;
  }
  std::vector<uint8_t> may_be_offered(frame_count_);
  uint32_t writing_on_offer = 0;
  for (uint32_t frame = 0; frame < frame_count_; ++frame) {
    const PinWord seen = word(frame).load_acquire();
    const bool unused = is_free[frame] || frame >= fresh_;
    SPW_CHECK(unused == (seen.state() == FrameState::kFree));
    SPW_CHECK(!(unused && on_offer_[frame]));
    may_be_offered[frame] = !unused && !on_offer_[frame];
    writing_on_offer += seen.writing() && on_offer_[frame];
  }
  SPW_CHECK(frame_count_ - used_frames() == free_.size() + (frame_count_ - fresh_));
  SPW_CHECK(in_writing_ == writing_on_offer);
  policy_->check_invariants(may_be_offered);
}

}  // namespace spw::cache
