#include "cache/page_sets/set_frames.h"

#include <mutex>

#include "base/check.h"
#include "cache/writeback/writeback.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

SetFrames::SetFrames(PartitionContext& context, PartitionId id, Writeback& writeback)
    : Organisation(context, id, writeback),
      sets_(context.directory.sets()->sets_of(id)),
      rule_(context.directory.sets()->rule()),
      evict_batch_(
          static_cast<uint32_t>(std::clamp<size_t>(context.frames.release_batch_max(), 1, kDroppedMax))),
      scheduled_many_(std::min(kScheduledMany, sets_.count())) {
  for (std::vector<uint32_t>* sets : {&scheduled_, &taken_over_})
    sets->reserve(std::min(kScheduledMax, sets_.count()));
}

// ---- Frames ----

Organisation::Taken SetFrames::take(BlockId block, uint64_t refs, bool ahead) {
  return take_within(block, refs, ahead, 1, kNear);
}

// A set of which something is being written waits for that, and so for the owner, rather than send its blocks astray.
Organisation::Taken SetFrames::take_alone(BlockId block) {
  const bool waits = is_being_written(home_of(block));
  return take_within(block, 1, false, 1, waits ? 0 : kNear);
}

Organisation::Taken SetFrames::take_from_afar(BlockId block, uint64_t refs) {
  return take_within(block, refs, false, kNear + 1, sets_.count() - 1);
}

// At home, or so many sets behind it.
Organisation::Taken SetFrames::take_within(BlockId block, uint64_t refs, bool ahead, uint32_t nearest,
                                           uint32_t farthest) {
  const uint32_t home = home_of(block);
  const PinWord filling = PinWord::filling(block, refs, ahead);
  std::lock_guard lock(sets_[home].lock);
  const FrameId present =
      sets_.first_from_home(home, [&](AtomicPinWord& word) { return word.load_relaxed().holds(block); });
  if (present != kNoFrame) return {Take::kPresent, present};
  if (const unsigned slot = slot_in(home, home); slot != kNoSlot) {
    occupy(home, 0, slot, filling);
    return {Take::kTaken, sets_.frame(home, slot)};
  }
  farthest = std::min(farthest, sets_.count() - 1);
  for (uint32_t distance = nearest; distance <= farthest; ++distance) {
    const uint32_t set = sets_.behind(home, distance);
    std::unique_lock other(sets_[set].lock, std::try_to_lock);
    if (!other) continue;
    const unsigned slot = slot_in(set, home);
    if (slot == kNoSlot) continue;
    occupy(home, distance, slot, filling);
    return {Take::kTaken, sets_.frame(set, slot)};
  }
  schedule_if_dirty(home);
  return {Take::kNone};
}

// Under the locks of both sets.
void SetFrames::occupy(uint32_t home, uint32_t distance, unsigned slot, PinWord filling) {
  const uint32_t set = sets_.behind(home, distance);
  if (distance > 0) {
    PageSet& at_home = sets_[home];
    const uint32_t before = at_home.strayed.load_acquire() == 0 ? 0 : at_home.reach.load_relaxed();
    at_home.reach.store_relaxed(std::max(before, distance));
    at_home.strayed.fetch_add_acq_rel(1);
    count(Counter::strayed_blocks);
  }
  if (filling.ahead()) ahead_unused_.fetch_add_relaxed(1);
  sets_[set].frequencies.insert(rule_, slot, filling.block());
  sets_[set].words[slot].store_release(filling);
  schedule_if_dirty(set);
}

unsigned SetFrames::used_in(uint32_t set) const {
  unsigned used = 0;
  for (const AtomicPinWord& pin_word : sets_[set].words)
    used += pin_word.load_relaxed().state() != FrameState::kFree;
  return used;
}

bool SetFrames::is_being_written(uint32_t set) const {
  return std::any_of(std::begin(sets_[set].words), std::end(sets_[set].words),
                     [](const AtomicPinWord& pin_word) { return pin_word.load_relaxed().writing(); });
}

// A slot that may be filled by the caller, who has the locks of `set` and `home`; evicts for it what has to go, which
// is more than one block where the limit has fallen.
unsigned SetFrames::slot_in(uint32_t set, uint32_t home) {
  const unsigned most = ways(set);
  unsigned used = used_in(set);
  if (used < most && used_frames() < limit()) {
    note_taken();
    for (unsigned slot = 0;; ++slot)
      if (sets_[set].words[slot].load_relaxed().state() == FrameState::kFree) return slot;
  }
  if (most == 0) return kNoSlot;
  for (;; --used) {
    const unsigned slot = evict_alone(set, home);
    if (slot == kNoSlot || used <= most) return slot;
    note_freed(1);
  }
}

// The slot of the block that the rule names, which is out of the set
// then, its memory released. Under the locks of `set` and `home`.
unsigned SetFrames::evict_alone(uint32_t set, uint32_t home) {
  PinWord was;
  std::unique_lock<SetLock> of_stray;
  const unsigned slot = evict_in(set, &was, [&](uint32_t other) {
    if (other == home) return true;
    of_stray = std::unique_lock(sets_[other].lock, std::try_to_lock);
    return of_stray.owns_lock();
  });
  if (slot == kNoSlot) return kNoSlot;
  const Resident victim{sets_.frame(set, slot), was.block()};
  context_.frames.release({&victim, 1});
  return slot;
}

// Frees the word of the block that the rule names. Under the set's lock; lock_home(set) gets that of a block whose home
// is elsewhere, or says that it cannot be had.
template <class LockHome>
unsigned SetFrames::evict_in(uint32_t set, PinWord* was, LockHome lock_home) {
  if (context_.frames.notes_uses()) learn_uses(set);
  uint8_t eligible = 0;
  for (unsigned i = 0; i < kBlocksASet; ++i)
    if (sets_[set].words[i].load_relaxed().is_evictable()) eligible |= static_cast<uint8_t>(1u << i);
  while (eligible != 0) {
    const unsigned slot = sets_[set].frequencies.victim(rule_, eligible);
    eligible &= static_cast<uint8_t>(~(1u << slot));
    // It is in no other set and nothing else comes here, so its home stays the same under the set's lock.
    const PinWord seen = sets_[set].words[slot].load_relaxed();
    const uint32_t home = home_of(seen.block());
    if (home != set && !lock_home(home)) continue;
    if (!sets_[set].words[slot].try_free(false, was)) continue;
    forget(set, slot, *was);
    count(Counter::evictions);
    telemetry::note_event(telemetry::TraceEvent::kEvicted, was->block().value);
    context_.tell_left(was->block());
    return slot;
  }
  return kNoSlot;
}

// Where the program's uses are seen only when they are watched for,
// the referenced bit stands for those since the last look.
void SetFrames::learn_uses(uint32_t set) {
  for (unsigned i = 0; i < kBlocksASet; ++i) {
    AtomicPinWord& pin_word = sets_[set].words[i];
    const PinWord seen = pin_word.load_relaxed();
    if (!seen.referenced() || !seen.is_droppable()) continue;
    pin_word.clear_referenced();
    context_.frames.watch_for_use({sets_.frame(set, i), seen.block()});
    sets_[set].frequencies.note_use(rule_, i);
  }
}

// The slot's word has just been freed; `was` is what it was.
void SetFrames::forget(uint32_t set, unsigned slot, PinWord was) {
  sets_[set].frequencies.remove(rule_, slot, was.block());
  if (const uint32_t home = home_of(was.block()); home != set) sets_[home].strayed.fetch_sub_acq_rel(1);
  if (was.ahead()) ahead_used();
}

// ---- What the owner takes out ----

// The owner has the set's lock from now on, until release_dropped().
// Clients never wait for one lock with another in hand.
void SetFrames::hold(uint32_t set) {
  if (is_held(set)) return;
  sets_[set].lock.lock();
  held_.push_back(set);
}

bool SetFrames::is_held(uint32_t set) const {
  return std::find(held_.begin(), held_.end(), set) != held_.end();
}

// The frame's word has just been freed, by the owner.
void SetFrames::leave(FrameId frame, PinWord was) {
  word(frame).store_release(leaving());
  dropped_.push_back({frame, was.block()});
}

bool SetFrames::drop(FrameId frame, BlockId block, Drop which, PinWord* was) {
  if (dropped_.size() == kDroppedMax) release_dropped();
  const uint32_t set = sets_.set_of(frame);
  hold(set);
  hold(home_of(block));
  if (!word(frame).load_relaxed().holds(block) || !word(frame).try_free(which == Drop::kAny, was))
    return false;
  forget(set, PageSets::slot_of(frame), *was);
  leave(frame, *was);
  return true;
}

bool SetFrames::drop_failed(FrameId frame) {
  if (dropped_.size() == kDroppedMax) release_dropped();
  const PinWord was = word(frame).load_acquire();
  if (was.state() != FrameState::kFailed) return false;
  hold(sets_.set_of(frame));
  hold(home_of(was.block()));
  if (!word(frame).try_free_failed()) return false;
  forget(sets_.set_of(frame), PageSets::slot_of(frame), was);
  leave(frame, was);
  return true;
}

void SetFrames::release_dropped() {
  if (!dropped_.empty()) context_.frames.release(dropped_);
  note_freed(static_cast<uint32_t>(dropped_.size()));
  for (const Resident& dropped : dropped_) word(dropped.frame).store_release(PinWord::free());
  dropped_.clear();
  for (const uint32_t set : held_) sets_[set].lock.unlock();
  held_.clear();
}

void SetFrames::await_eviction(BlockId block) { pass(home_of(block)); }
void SetFrames::await_evictions_from(FrameId frame) { pass(sets_.set_of(frame)); }

// Where blocks are at no address of their own, nobody minds how long their memory stays.
void SetFrames::pass(uint32_t set) {
  if (!context_.has_blocks_in_place() || is_held(set)) return;
  std::lock_guard passing(sets_[set].lock);
}

// One more block of those that are released together.
bool SetFrames::evict_with_others(uint32_t set) {
  hold(set);
  PinWord was;
  const unsigned slot = evict_in(set, &was, [&](uint32_t home) {
    hold(home);
    return true;
  });
  if (slot == kNoSlot) return false;
  leave(sets_.frame(set, slot), was);
  return true;
}

// The steps of RankedFrames::evict, but set by set, one block of each in turn, and writing comes last: it is for later
// evictions. Where a limit has fallen, sets that are above it come first.
void SetFrames::evict(EvictionBatch& batch) {
  const bool is_limited = limit() < frame_count_;
  for (const bool only_above : {true, false}) {
    if (only_above && !is_limited) continue;
    for (uint32_t idle = 0; batch.evicted < batch.wanted && idle < sets_.count();) {
      // 1. Choose a set.
      const uint32_t set = hand_;
      hand_ = sets_.behind(hand_, 1);
      const unsigned used = used_in(set);
      ++idle;
      if (used == 0 || (only_above && used <= ways(set))) continue;
      // 3. Take the clean block that its rule names, by a compare-and-swap of its pin word, and 4. remove it from the
      // set. Where there is none, step 2 below is for the set.
      if (evict_with_others(set)) {
        ++batch.evicted;
        idle = 0;
      } else {
        without_clean_.push_back(set);
      }
      // 5. Free the memory of what has left, many at a time.
      if (held_.size() >= kDroppedMax) release_dropped();
    }
  }
  release_dropped();
  // 2. Write dirty blocks of the sets that had no clean one. No lock is held by now.
  if (writeback_.may_write_now())
    for (const uint32_t set : without_clean_) write_dirty_in(set, kCleanWanted);
  without_clean_.clear();
  writeback_.submit();
}

// ---- Write-behind ----

// Under the set's lock, by whoever has just taken a frame of it.
void SetFrames::schedule_if_dirty(uint32_t set) {
  unsigned used = 0, clean = 0, dirty = 0;
  for (AtomicPinWord& pin_word : sets_[set].words) {
    const PinWord seen = pin_word.load_relaxed();
    used += seen.state() != FrameState::kFree;
    clean += seen.is_evictable() || seen.writing();
    dirty += seen.is_droppable() && seen.dirty();
  }
  if (clean >= kCleanMin || dirty == 0 || used < ways(set) || sets_[set].is_scheduled.load_relaxed()) return;
  std::lock_guard lock(schedule_lock_);
  if (scheduled_.size() == kScheduledMax) return;
  sets_[set].is_scheduled.store_relaxed(1);
  scheduled_.push_back(set);
  scheduled_count_.store_relaxed(static_cast<uint32_t>(scheduled_.size()));
}

void SetFrames::catch_up() {
  if (scheduled_count_.load_relaxed() == 0 || !writeback_.may_write_now()) return;
  {
    std::lock_guard lock(schedule_lock_);
    std::swap(scheduled_, taken_over_);
    scheduled_count_.store_relaxed(0);
  }
  for (const uint32_t set : taken_over_) {
    sets_[set].is_scheduled.store_relaxed(0);
    write_dirty_in(set, kCleanWanted);
  }
  taken_over_.clear();
  writeback_.submit();
}

// The least used first, until so many are clean, or will be. How many are on their way.
unsigned SetFrames::write_dirty_in(uint32_t set, unsigned clean_wanted) {
  unsigned clean = 0, under_way = 0;
  uint8_t dirty = 0;
  for (unsigned i = 0; i < kBlocksASet; ++i) {
    const PinWord seen = sets_[set].words[i].load_relaxed();
    clean += seen.is_evictable();
    under_way += seen.writing() || (seen.state() == FrameState::kFilling && seen.ahead());
    if (seen.is_droppable() && seen.dirty()) dirty |= static_cast<uint8_t>(1u << i);
  }
  while (dirty != 0 && clean + under_way < clean_wanted) {
    unsigned slot = kNoSlot;
    {
      std::lock_guard lock(sets_[set].lock);
      slot = sets_[set].frequencies.victim(rule_, dirty);
    }
    dirty &= static_cast<uint8_t>(~(1u << slot));
    const Writeback::Started started = writeback_.start(*this, sets_.frame(set, slot), false);
    if (started == Writeback::Started::kNoOperation) return under_way + 1;  // all are in flight
    under_way += started == Writeback::Started::kYes;
  }
  return under_way;
}

bool SetFrames::start_writes_for(BlockId block) {
  const bool may_write = writeback_.may_write_now();
  const uint32_t home = home_of(block);
  unsigned under_way = 0;
  for (uint32_t distance = 0; distance <= std::min(kNear, sets_.count() - 1); ++distance)
    under_way += write_dirty_in(sets_.behind(home, distance), may_write ? kBlocksASet : 0);
  writeback_.submit();
  return under_way > 0;
}

void SetFrames::check_invariants() const {
  std::vector<uint32_t> strayed(sets_.count());
  uint32_t used = 0;
  for (uint32_t set = 0; set < sets_.count(); ++set) {
    sets_[set].frequencies.check_invariants(rule_);
    for (const AtomicPinWord& pin_word : sets_[set].words) {
      const PinWord seen = pin_word.load_acquire();
      if (seen.state() == FrameState::kFree) continue;
      ++used;
      const uint32_t home = home_of(seen.block());
      const uint32_t distance = (set + sets_.count() - home) % sets_.count();
      SPW_CHECK(distance == 0 || distance <= sets_[home].reach.load_relaxed());
      strayed[home] += distance > 0;
    }
  }
  for (uint32_t set = 0; set < sets_.count(); ++set)
    SPW_CHECK(sets_[set].strayed.load_relaxed() == strayed[set]);
  SPW_CHECK(used_frames() == used);
  SPW_CHECK(dropped_.empty());
}

}  // namespace spw::cache
