#include "cache/extents/extents.h"

#include <algorithm>
#include <climits>

#include "base/units.h"
#include "platform/futex.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::Counter;

Result<std::unique_ptr<Extents>> Extents::create(unsigned block_shift, ExtentMemory& memory) {
  std::unique_ptr<Extents> made(new Extents(kExtentShift - block_shift, memory));
  made->count_ = made->of(memory.end());
  const uint64_t bytes = round_up((made->count_ + 1) * sizeof(AtomicExtentWord), kMmuPageBytes);
  auto table = platform::map_anonymous(bytes);
  if (!table) return table.status();
  made->table_ = std::move(*table);
  auto evicted =
      platform::map_anonymous(round_up((made->count_ + 1) * sizeof(Atomic<uint32_t>), kMmuPageBytes));
  if (!evicted) return evicted.status();
  made->evicted_ = std::move(*evicted);
  return made;
}

void Extents::note_miss(uint64_t extent) {
  if (!has_missed_.load_relaxed()) has_missed_.store_relaxed(true);
  Atomic<uint32_t>& at = evicted()[extent];
  if (at.load_relaxed() == 0) return;
  const uint32_t evicted_at = at.exchange_relaxed(0);
  if (evicted_at != 0 && evictions_.load_relaxed() - evicted_at < slots_max_.load_relaxed())
    missed_.fetch_add_relaxed(1);
}

bool Extents::may_come() const {
  const uint64_t at_ns = may_come_at_ns_.load_acquire();
  return !are_refused() && (at_ns == 0 || platform::monotonic_ns() >= at_ns);
}

void Extents::end_fork() {
  may_come_at_ns_.store_release(platform::monotonic_ns() + after_fork_ns_);
  after_fork_ns_ = std::min(2 * after_fork_ns_, kAfterForkNsMax);
  hold(false);
  ring();
}

bool Extents::leaves(uint64_t extent, ExtentWord seen, ExtentState to) {
  const ExtentState from = seen.state();
  if (are_held() || !word(extent).change(&seen, seen.in(to))) return false;
  fence_seq_cst();
  if (!are_held()) return true;
  word(extent).set(from);
  return false;
}

ExtentWord Extents::unclaim(uint64_t extent) {
  return word(extent).make_none([](ExtentWord seen) { return seen.state() == ExtentState::kClaimed; });
}

std::optional<uint32_t> Extents::pin(uint64_t extent) {
  AtomicExtentWord& shared = word(extent);
  for (ExtentWord seen = shared.load();;) {
    switch (seen.state()) {
      case ExtentState::kNone:
      case ExtentState::kClaimed:
        return std::nullopt;
      case ExtentState::kPlaced:
        if (shared.change(&seen, seen.with_pin())) return seen.slot();
        break;
      case ExtentState::kParked: {
        const uint32_t slot = seen.slot();
        // Who cannot have it at its address waits until it is none any more.
        if (slots_[slot].wanted() != Settle::kNot) {
          shared.await_change(seen);
          seen = shared.load();
          break;
        }
        if (!shared.change(&seen, seen.in(ExtentState::kMoving))) break;
        if (memory_.place(slot, first_of(extent))) {
          telemetry::count(Counter::extent_placements);
          if (refusals_.load_relaxed() >= 0) refusals_.store_relaxed(INT_MIN);
          shared.set(ExtentState::kPlaced, 1);
          wish_ahead(extent, slots_[slot]);
          return slot;
        }
        refusals_.fetch_add_relaxed(1);
        shared.set(ExtentState::kParked);
        settle(extent, Settle::kWritten);
        seen = shared.load();
        break;
      }
      default:
        shared.await_change(seen);
        seen = shared.load();
    }
  }
}

void Extents::unpin(uint32_t slot) {
  AtomicExtentWord& shared = word(slots_[slot].extent.load_relaxed());
  ExtentWord seen = shared.load();
  while (!shared.change(&seen, seen.without_pin())) {
  }
  if (seen.pins() == 1 && slots_[slot].wanted() != Settle::kNot) ring();
}

// The longer the stream has been, the further ahead: of what is read in vain at its end there is a share.
void Extents::wish_ahead(uint64_t extent, Slot& slot) {
  const uint32_t length = slot.length.exchange_relaxed(0);
  if (length == 0) return;
  const uint32_t ahead_last = std::min(1 + length / kAheadShare, ahead_max());
  for (uint32_t ahead = 1; ahead <= ahead_last; ++ahead)
    if (extent + ahead < count_) wish({extent + ahead, length + 1});
}

void Extents::wish(Wish wish) {
  if (wish.extent >= count_ || !may_come()) return;
  ExtentWord seen = word(wish.extent).load();
  if (seen.bits() != 0 || !word(wish.extent).change(&seen, seen.as_wished())) return;
  const uint32_t place = next_wish_.fetch_add_relaxed(1) % kWishesMax;
  const uint64_t forgotten = wishes_[place].exchange_acq_rel(packed(wish));
  if (forgotten != 0) unwish(wish_of(forgotten).extent);
  ring();
}

void Extents::unwish(uint64_t extent) {
  (void)word(extent).make_none([](ExtentWord seen) { return seen.is_wished(); });
}

void Extents::await_wish(uint64_t extent) {
  const uint64_t since_ns = platform::monotonic_ns();
  for (;;) {
    const ExtentWord seen = word(extent).load();
    if (!seen.is_wished()) return;
    const uint64_t waited_ns = platform::monotonic_ns() - since_ns;
    if (waited_ns >= kWishNsMax) return unwish(extent);
    word(extent).await_change(seen, kWishNsMax - waited_ns);
  }
}

std::optional<Extents::Wish> Extents::take_wish() {
  // The oldest first.
  const uint32_t next = next_wish_.load_relaxed();
  for (uint32_t i = 0; i < kWishesMax; ++i) {
    Atomic<uint64_t>& place = wishes_[(next + i) % kWishesMax];
    if (place.load_relaxed() == 0) continue;
    const uint64_t taken = place.exchange_acquire(0);
    if (taken != 0) return wish_of(taken);
  }
  return std::nullopt;
}

void Extents::settle(uint64_t extent, Settle how) {
  ExtentWord seen = word(extent).load();
  if (seen.state() == ExtentState::kNone || seen.state() == ExtentState::kClaimed) return;
  slots_[seen.slot()].settle.store_release((extent + 1) << 2 | static_cast<uint64_t>(how));
  ring();
}

void Extents::ring() {
  bell_.fetch_add_acq_rel(1);
  platform::futex_wake(bell_, 1);
}

void Extents::sleep(uint32_t heard, uint64_t timeout_ns) {
  (void)platform::futex_wait(bell_, heard, timeout_ns);
}

}  // namespace spw::cache
