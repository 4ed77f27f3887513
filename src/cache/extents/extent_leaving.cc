// How extents leave: which, out of their addresses, and what has changed of them to the store (extent_mover.h).
#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/zeros.h"
#include "cache/extents/extent_mover.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

namespace {
constexpr uint64_t kRetryNs = 10'000'000;
// After so long without one that came, and while blocks are missed, one leaves that nobody has used twice in a row.
constexpr uint64_t kIdleAfterNs = 1'000'000'000, kIdleLookNs = 100'000'000;
constexpr uint32_t kPlentifulShare = 4;  // of the blocks' frames: where so many are free, none lack
}  // namespace

void ExtentMover::leave_orders(uint32_t slot) {
  std::erase(order_, slot);
  std::erase(resting_, slot);
}

// The first of those that `which` says that can go; then the orders are other ones.
template <class Which>
bool ExtentMover::take_out_first(const std::deque<uint32_t>& of, Which which) {
  for (const uint32_t slot : of)
    if (which(slot) && take_out(slot)) return true;
  return false;
}

// That somebody waits for; again, if it could not be written.
bool ExtentMover::settle_one() {
  const auto is_wanted = [&](uint32_t slot) { return extents_.slot(slot).wanted() != Settle::kNot; };
  return take_out_first(resting_, is_wanted) || take_out_first(order_, is_wanted);
}

// One that has rested, or, if that is not asked for, the first that nobody pins. False: there is none.
bool ExtentMover::evict_one(Evict which) {
  const auto any = [](uint32_t) { return true; };
  find_in_use();
  const bool is_out = take_out_first(resting_, any) || (which == Evict::kAny && take_out_first(order_, any));
  let_first_rest();
  if (!is_out) return false;
  count(Counter::extent_evictions);
  demand_.note_eviction(extents_.take_missed());
  return true;
}

// No stream has come for a while. What none uses any more is memory that blocks are missed for.
void ExtentMover::let_idle_leave() {
  const uint64_t now_ns = platform::monotonic_ns();
  if (with_memory_.load_relaxed() == 0 || now_ns - came_at_ns_ < kIdleAfterNs || now_ns < look_at_ns_) return;
  look_at_ns_ = now_ns + kIdleLookNs;
  if (!extents_.take_has_missed() || blocks_.free_frames() > blocks_.frame_limit() / kPlentifulShare) return;
  demand_.note_idle();
  find_in_use();
  (void)take_out_first(resting_, [](uint32_t) { return true; });
  let_first_rest();
}

// Of those that rest, the ones that somebody has come for.
void ExtentMover::find_in_use() {
  for (size_t left = resting_.size(); left > 0; --left) {
    const uint32_t slot = resting_.front();
    resting_.pop_front();
    const ExtentState state = word_of(slot).load().state();
    const bool is_in_use = state == ExtentState::kPlaced || state == ExtentState::kMoving;
    (is_in_use ? order_ : resting_).push_back(slot);
    if (is_in_use && !std::exchange(held_[slot].is_in_use, true)) demand_.has_begun();
  }
}

// One that was read ahead and is not at its address yet does so where it is.
void ExtentMover::let_first_rest() {
  // One that cannot be written, or moved, for the moment is in nobody's way.
  const uint64_t now_ns = platform::monotonic_ns();
  if (std::ranges::any_of(resting_, [&](uint32_t slot) { return held_[slot].retry_at_ns <= now_ns; })) return;
  const auto first = std::ranges::find_if(order_, [&](uint32_t slot) {
    const ExtentWord seen = word_of(slot).load();
    return seen.state() == ExtentState::kParked ||
           (seen.state() == ExtentState::kPlaced && seen.pins() == 0 &&
            bring_back(slot, seen, ExtentState::kParked));
  });
  if (first == order_.end()) return;
  resting_.push_back(*first);
  order_.erase(first);
}

// From its address, where nobody pins it, into its slot. False: not now.
bool ExtentMover::bring_back(uint32_t slot, ExtentWord seen, ExtentState then) {
  const uint64_t extent = extents_.slot(slot).extent.load_relaxed();
  if (held_[slot].retry_at_ns > platform::monotonic_ns() ||
      !extents_.leaves(extent, seen, ExtentState::kMoving))
    return false;
  const bool is_back = extents_.memory().take_back(slot, extents_.first_of(extent));
  const uint64_t now_ns = platform::monotonic_ns();
  if (!is_back) held_[slot].retry_at_ns = now_ns + kRetryNs;
  Atomic<uint64_t>& failing_since_ns = extents_.slot(slot).failing_since_ns;
  if (is_back || failing_since_ns.load_relaxed() == 0) failing_since_ns.store_relaxed(is_back ? 0 : now_ns);
  word_of(slot).set(is_back ? then : ExtentState::kPlaced);
  return is_back;
}

// Out of its address, if nobody pins it, and on its way to the store. False: not now.
bool ExtentMover::take_out(uint32_t slot) {
  const uint64_t extent = extents_.slot(slot).extent.load_relaxed();
  const ExtentWord seen = extents_.word(extent).load();
  if (held_[slot].retry_at_ns > platform::monotonic_ns()) return false;
  if (seen.state() == ExtentState::kParked) {
    if (!extents_.leaves(extent, seen, ExtentState::kWriting)) return false;
  } else if (seen.state() != ExtentState::kPlaced || seen.pins() > 0 ||
             !bring_back(slot, seen, ExtentState::kWriting)) {
    return false;
  }
  leave_orders(slot);
  begin_write(slot);
  return true;
}

// Whether the store lacks something of the block, whose first page is `page`. Where it has nothing (a discard has come
// in between), the sums are not of what it would give.
bool ExtentMover::has_changed(uint32_t slot, uint32_t page, BlockId block) {
  const uint32_t pages = pages_a_block();
  const std::byte* const memory = extents_.memory().slot(slot) + size_t{page} * store::kSummedBytes;
  for (uint32_t i = 0; i < pages; ++i)
    if (checksum_(memory + size_t{i} * store::kSummedBytes, secret_) != held_[slot].sums[page + i])
      return true;
  return !source_.locate_for_fill(block).has_contents &&
         !is_all_zero(memory, size_t{pages} * store::kSummedBytes);
}

// The pages that have changed, block by block of those that live; where none has, the extent is gone.
void ExtentMover::begin_write(uint32_t slot) {
  if (extents_.slot(slot).wanted() == Settle::kDropped) return free_slot(slot);
  Held& held = held_[slot];
  held.error = 0;
  held.store = nullptr;
  held.changed.clear();
  held.under_way = 1;  // until all has been asked for
  writing_.push_back(slot);
  const BlockId first = extents_.first_of(extents_.slot(slot).extent.load_relaxed());
  const uint32_t pages = pages_a_block(), run_max = kPieceBytes / store::kSummedBytes;
  Backing run_at;
  uint32_t run_first = 0, run_pages = 0;
  const auto end_run = [&] {
    if (run_pages > 0) write_pages(slot, run_first, run_pages, run_at);
    run_pages = 0;
  };
  for (uint32_t page = 0; page < kPages; page += pages) {
    const BlockId block = first + page / pages;
    const Backing at = has_changed(slot, page, block) ? source_.locate_for_writeback(block) : Backing();
    if (at.store == nullptr) {  // it is as it was, or nobody's by now
      end_run();
      continue;
    }
    const bool adjoins = run_pages > 0 && run_pages < run_max && at.store == run_at.store &&
                         at.offset_bytes == run_at.offset_bytes + uint64_t{run_pages} * store::kSummedBytes;
    if (!adjoins) {
      end_run();
      run_first = page;
      run_at = at;
    }
    run_pages += pages;
    held.changed.push_back(page / pages);
  }
  end_run();
  if (--held.under_way == 0) end_write(slot);
}

void ExtentMover::write_pages(uint32_t slot, uint32_t first, uint32_t count, const Backing& at) {
  // Behind a fork what is written goes elsewhere than it came from. All of an extent to one store, or once more.
  Held& held = held_[slot];
  if (held.store == nullptr && turn_to(*at.store)) held.store = at.store;
  if (held.store != at.store) {
    held.error = EAGAIN;
    return;
  }
  telemetry::count(Counter::extent_pages_written, count);
  submit(store::Op::kWrite, slot, uint64_t{first} * store::kSummedBytes,
         uint64_t{count} * store::kSummedBytes, at.offset_bytes);
}

void ExtentMover::end_write(uint32_t slot) {
  Held& held = held_[slot];
  std::erase(writing_, slot);
  if (held.error == 0) {
    const uint64_t extent = extents_.slot(slot).extent.load_relaxed();
    for (const uint32_t block : held.changed)
      source_.written_back(extents_.first_of(extent) + block, held.store);
    count(Counter::writebacks, held.changed.size());
    if (extents_.slot(slot).wanted() == Settle::kNot) extents_.note_eviction(extent);
    return free_slot(slot);
  }
  const uint64_t now_ns = platform::monotonic_ns();
  if (held.failing_since_ns == 0) held.failing_since_ns = now_ns;
  if (now_ns - held.failing_since_ns > options_.write_wait_ns)
    options_.on_error(options_.error_context,
                      Status(held.error, "cannot write to " + (store_ ? store_->describe() : "its store")));
  held.retry_at_ns = now_ns + kRetryNs;
  resting_.push_back(slot);
  word_of(slot).set(ExtentState::kParked);
}

}  // namespace spw::cache
