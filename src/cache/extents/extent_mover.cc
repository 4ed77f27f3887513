#include "cache/extents/extent_mover.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "platform/random.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

namespace {
constexpr uint64_t kIdleNs = 50'000'000;
constexpr uint64_t kBusyNs = 500'000;  // somebody may ask for something meanwhile
constexpr uint64_t kSoonNs = 1'000'000;
// Blocks have to leave for memory that may not be had then: it is asked for less and less often.
constexpr uint64_t kMemoryWaitNsMin = 50'000'000, kMemoryWaitNsMax = 20'000'000'000;
// An extent of which a larger share is in memory already is left as it is.
constexpr uint32_t kCachedShare = 4;
constexpr int kTrimsMax = 64;
}  // namespace

uint32_t ExtentMover::slots_for(uint32_t frames, unsigned block_shift, uint32_t share) {
  const uint32_t slots = (frames / share) >> (kExtentShift - block_shift);
  return slots < kSlotsMin ? 0 : slots;
}

ExtentMover::ExtentMover(const Options& options, Extents& extents, SharedCache& blocks, BlockSource& source,
                         Quiesce quiesce)
    : options_(options),
      extents_(extents),
      blocks_(blocks),
      source_(source),
      quiesce_(std::move(quiesce)),
      checksum_(store::checksum_function()),
      held_(extents.memory().slots()) {
  platform::draw_random(secret_.bytes, sizeof secret_.bytes);
  for (uint32_t slot = extents.memory().slots(); slot > 0; --slot) free_.push_back(slot - 1);
  for (Op& op : ops_) idle_ops_.push_back(&op);
  set_limit(blocks.frame_limit());
}

void ExtentMover::set_limit(uint32_t frames) {
  std::lock_guard lock(limit_mutex_);
  limit_ = frames;
  slots_max_.store_relaxed(
      std::min(slots_for(frames, options_.block_shift, options_.share), extents_.memory().slots()));
  extents_.set_slots_max(slots_max_.load_relaxed());
  leave_rest();
}

void ExtentMover::grant(uint32_t slots) {
  std::lock_guard lock(limit_mutex_);
  granted_ = slots;
  leave_rest();
}

// The block cache has the frames that slots do not take. Under limit_mutex_.
void ExtentMover::leave_rest() {
  const uint32_t taken = granted_ * extents_.blocks();
  blocks_.set_frame_limit(limit_ > taken ? limit_ - taken : 0);
}

void ExtentMover::run(Client& client) {
  client_ = &client;
  while (!stopping_.load_acquire()) {
    const uint32_t heard = extents_.heard();
    close_queue();
    bool has_moved = reap();
    has_moved |= settle_one();
    has_moved |= shrink();
    has_moved |= take_wishes();
    if (has_moved) continue;
    let_idle_leave();
    if (queue_ && queue_->in_flight() > 0)
      queue_->wait(kBusyNs);
    else
      extents_.sleep(heard, wishes_.empty() ? kIdleNs : kBusyNs);
  }
  while (queue_ && queue_->in_flight() > 0) {
    queue_->wait(platform::kNoTimeout);
    (void)reap();
  }
}

// ---- Reading ----

// Wishes that come to nothing yet are tried again a few times.
bool ExtentMover::take_wishes() {
  while (const auto wish = extents_.take_wish()) {
    wishes_.push_back({*wish});
    if (wishes_.size() <= kWishesMax) continue;
    extents_.unwish(wishes_.front().wish.extent);
    wishes_.pop_front();
  }
  bool has_moved = false;
  const uint64_t now_ns = platform::monotonic_ns();
  for (size_t left = wishes_.size(); left > 0 && reads_ < kReadsMax; --left) {
    Pending next = wishes_.front();
    wishes_.pop_front();
    const Came came = next.not_before_ns > now_ns ? Came::kNotYet : begin_read(next.wish);
    if (came != Came::kYes) extents_.unwish(next.wish.extent);
    has_moved |= came == Came::kYes;
    if (came != Came::kNotYet) continue;
    if (next.not_before_ns <= now_ns) {
      if (++next.tries == kTriesMax) continue;
      next.not_before_ns = now_ns + kSoonNs;
    }
    wishes_.push_back(next);
  }
  return has_moved;
}

// All of it lives, is on the store side by side, and is the program's own memory, of which the store may get what
// nobody has stored.
bool ExtentMover::may_become(uint64_t extent, Backing* at) {
  const BlockId first = extents_.first_of(extent);
  *at = source_.locate_for_fill(first);
  if (at->store == nullptr) return false;
  for (uint64_t i = 0; i < extents_.blocks(); ++i) {
    const Backing backing = source_.locate_for_fill(first + i);
    if (backing.store != at->store || !backing.has_contents || !source_.is_anonymous(first + i) ||
        backing.offset_bytes != at->offset_bytes + (i << options_.block_shift))
      return false;
  }
  return true;
}

ExtentMover::Came ExtentMover::begin_read(Extents::Wish wish) {
  Backing at;
  if (!extents_.may_come() || !extents_.word(wish.extent).load().is_vacant() || !may_become(wish.extent, &at))
    return Came::kNo;
  uint32_t cached = 0;
  const BlockId first = extents_.first_of(wish.extent);
  for (uint64_t i = 0; i < extents_.blocks(); ++i) cached += blocks_.is_resident(first + i);
  if (cached > extents_.blocks() / kCachedShare) return Came::kNo;
  demand_.note_stream();
  if (wish.length <= 1 && !demand_.admits_stream(slots_max_.load_relaxed())) return Came::kNo;
  if (!open_queue(*at.store)) return Came::kNotYet;
  if (cached > 0 && !blocks_.take_out(*client_, first, extents_.blocks())) return Came::kNotYet;
  const auto slot = take_slot();
  if (!slot) return Came::kNotYet;
  extents_.slot(*slot).length.store_relaxed(wish.length);
  if (!claim(wish.extent, *slot, &at)) {
    free_.push_back(*slot);
    return Came::kNotYet;
  }
  begin_reads(*slot, at);
  came_at_ns_ = platform::monotonic_ns();
  // The next one finds a slot that need not be written first.
  if (!has_free_slot() && writing_.empty()) (void)evict_one(Evict::kRested);
  return Came::kYes;
}

// What was true before it was claimed need not be. Who is about to settle a range looks at the slots, not at all words:
// so the slot says whose it is before the barrier.
bool ExtentMover::claim(uint64_t extent, uint32_t slot, Backing* at) {
  AtomicExtentWord& word = extents_.word(extent);
  ExtentWord seen = word.load();
  const ExtentWord claimed = seen.in(ExtentState::kClaimed);
  extents_.slot(slot).settle.store_relaxed(0);
  extents_.slot(slot).extent.store_release(extent);
  if (seen.is_vacant() && word.change(&seen, claimed)) {
    quiesce_(extent);
    seen = claimed;
    if (extents_.may_come() && blocks_.take_out(*client_, extents_.first_of(extent), extents_.blocks()) &&
        may_become(extent, at) && at->store == store_ &&
        word.change(&seen, seen.in(ExtentState::kFilling).with_slot(slot)))
      return true;
    (void)extents_.unclaim(extent);
  }
  extents_.slot(slot).extent.store_release(Extents::kNoExtent);
  return false;
}

void ExtentMover::begin_reads(uint32_t slot, const Backing& at) {
  order_.push_back(slot);
  ++reads_;
  Held& held = held_[slot];
  held.error = 0;
  held.failing_since_ns = held.retry_at_ns = 0;
  held.under_way = 1;  // until all have been asked for
  for (uint64_t piece = 0; piece < kExtentBytes; piece += kPieceBytes)
    submit(store::Op::kRead, slot, piece, kPieceBytes, at.offset_bytes + piece);
  if (--held.under_way == 0) end_read(slot);
}

void ExtentMover::end_read(uint32_t slot) {
  --reads_;
  Held& held = held_[slot];
  if (held.error != 0) return free_slot(slot);
  if (!held.sums) held.sums = std::make_unique<uint64_t[]>(kPages);
  const std::byte* page = extents_.memory().slot(slot);
  for (uint32_t i = 0; i < kPages; ++i, page += store::kSummedBytes) held.sums[i] = checksum_(page, secret_);
  count(Counter::extent_fills);
  count(Counter::readahead_fills, extents_.blocks());
  blocks_.note_passed(extents_.blocks());
  word_of(slot).set(ExtentState::kParked);
}

// ---- Slots ----

// One that has memory is the last that was freed.
bool ExtentMover::has_free_slot() const { return !free_.empty() && held_[free_.back()].has_memory; }

std::optional<uint32_t> ExtentMover::take_slot() {
  const auto get_more = [this] {
    if (!has_free_slot() && !free_.empty() && with_memory_.load_relaxed() < slots_wanted())
      get_memory(free_.back());
  };
  get_more();
  if (!has_free_slot() && writing_.size() < kReadsMax) (void)evict_one(Evict::kRested);
  get_more();  // those that are in use stay
  if (!has_free_slot()) return std::nullopt;
  const uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

// As soon as the block cache has given as much up.
void ExtentMover::get_memory(uint32_t slot) {
  const uint32_t with_memory = with_memory_.load_relaxed();
  if (platform::monotonic_ns() < memory_at_ns_) return;
  grant(with_memory + 1);
  bool has_room = false;
  for (int i = 0; i < kTrimsMax && !has_room; ++i) {
    (void)blocks_.make_room(*client_, 0, 0);
    has_room = blocks_.occupied_frames() <= blocks_.frame_limit();
  }
  held_[slot].has_memory = has_room && extents_.memory().prepare(slot);
  if (!held_[slot].has_memory) {
    memory_wait_ns_ = std::clamp(2 * memory_wait_ns_, kMemoryWaitNsMin, kMemoryWaitNsMax);
    memory_at_ns_ = platform::monotonic_ns() + memory_wait_ns_;
    return grant(with_memory);
  }
  memory_wait_ns_ = 0;
  with_memory_.store_relaxed(with_memory + 1);
  peak_.store_relaxed(std::max(peak_.load_relaxed(), with_memory + 1));
}

// Gives the memory of slots back that are above the limit, or more than is wanted. For the limit what is in use goes,
// too.
bool ExtentMover::shrink() {
  if (with_memory_.load_relaxed() <= slots_wanted()) return false;
  const auto with = std::ranges::find_if(free_, [&](uint32_t slot) { return held_[slot].has_memory; });
  if (with == free_.end()) return is_above_limit() && writing_.empty() && evict_one(Evict::kAny);
  extents_.memory().release(*with);
  held_[*with].has_memory = false;
  std::swap(*with, free_.front());
  with_memory_.store_relaxed(with_memory_.load_relaxed() - 1);
  grant(with_memory_.load_relaxed());
  return true;
}

void ExtentMover::free_slot(uint32_t slot) {
  leave_orders(slot);
  if (std::exchange(held_[slot].is_in_use, false)) demand_.has_ended();
  AtomicExtentWord& word = word_of(slot);
  extents_.slot(slot).extent.store_release(Extents::kNoExtent);
  extents_.slot(slot).settle.store_relaxed(0);
  free_.push_back(slot);
  word.set(ExtentState::kNone);
}

// ---- Requests ----

bool ExtentMover::open_queue(store::Store& store) {
  if (store_ == &store) return true;
  if (queue_ && queue_->in_flight() > 0) return false;
  auto opened = store.open_queue(kOpsMax);
  if (!opened) return false;
  queue_ = std::move(*opened);
  store_ = &store;
  return true;
}

void ExtentMover::close_store(store::Store& store) {
  std::lock_guard lock(closing_mutex_);
  closing_.store_release(&store);
  extents_.ring();
  while (closing_.load_acquire() != nullptr) platform::sleep_ns(kSoonNs);
}

void ExtentMover::close_queue() {
  store::Store* const closing = closing_.load_acquire();
  if (closing == nullptr || (store_ == closing && queue_->in_flight() > 0)) return;
  if (store_ == closing) {
    queue_.reset();
    store_ = nullptr;
  }
  closing_.store_release(nullptr);
}

// What is under way to another one ends first.
bool ExtentMover::turn_to(store::Store& store) {
  while (store_ != &store && queue_ && queue_->in_flight() > 0) {
    queue_->wait(platform::kNoTimeout);
    (void)reap();
  }
  return open_queue(store);
}

// There may be none: what is under way then ends first.
ExtentMover::Op& ExtentMover::take_op() {
  while (idle_ops_.empty()) {
    queue_->wait(platform::kNoTimeout);
    (void)reap();
  }
  Op& op = *idle_ops_.back();
  idle_ops_.pop_back();
  op.request = store::Request();
  op.request.user = &op;
  return op;
}

// A transfer of [from, from + bytes) of the slot.
void ExtentMover::submit(store::Op what, uint32_t slot, uint64_t from, uint64_t bytes,
                         uint64_t offset_bytes) {
  Op& op = take_op();
  op.slot = slot;
  op.request.op = what;
  op.request.offset_bytes = offset_bytes;
  op.request.segment_count = 1;
  op.request.segments[0] = {extents_.memory().slot(slot) + from, bytes};
  ++held_[slot].under_way;
  store::Request* const request = &op.request;
  SPW_CHECK(queue_->submit({&request, 1}) == 1);
}

bool ExtentMover::reap() {
  if (!queue_ || queue_->in_flight() == 0) return false;
  store::Completion completions[kOpsMax];
  const size_t done = queue_->reap(completions);
  for (size_t i = 0; i < done; ++i) {
    Op* const op = static_cast<Op*>(completions[i].request->user);
    const uint32_t slot = op->slot;
    const bool is_read = op->request.op == store::Op::kRead;
    idle_ops_.push_back(op);
    Held& held = held_[slot];
    if (completions[i].error != 0) held.error = completions[i].error;
    if (--held.under_way > 0) continue;
    is_read ? end_read(slot) : end_write(slot);
  }
  return done > 0;
}

}  // namespace spw::cache
