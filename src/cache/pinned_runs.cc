// Pins of neighbours, by one step for all of them: one look at each, one request to their owner, one count. The blocks
// of a run lie in one group, so they have one partition. A block that was never written brings those behind it along
// where the program writes its way through (bring_zeros).
//
// A block's steps are those of a pin (shared_cache.h): what is there is pinned by a compare-and-swap of its word, and
// what is to be overwritten goes from `free` by way of `filling` to `resident`, held by this client all the while. Only
// what waits for nobody is done here: a block that is being filled, or has no frame yet, is pin()'s.
#include <algorithm>

#include "base/check.h"
#include "base/units.h"
#include "cache/shared_cache.h"
#include "platform/futex.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

namespace {
// Never-written blocks that come at a time. They are cleared in one go, which takes some microseconds.
constexpr uint64_t kZeroRunBytesMax = 64 * kKiB;
}  // namespace

uint32_t SharedCacheParts::pin_run(Client& client, BlockId first, uint32_t count, Access access, Pin* out) {
  SPW_DCHECK(count > 0 && group_of(first) == group_of(first + (count - 1)));
  if (!context_.options.clients_pin || context_.placement.has_address(first)) return 0;
  // Whoever holds a run may need frames of the same partition to copy from or to.
  count = std::min(count, partition_of(first).organisation().run_max());
  const uint32_t there = pin_there(client, first, count, access, out);
  return there > 0 || access != Access::kOverwrite ? there : claim_run(client, first, count, out);
}

// Those that are resident, up to the first that is not.
uint32_t SharedCacheParts::pin_there(Client& client, BlockId first, uint32_t blocks, Access access,
                                     Pin* out) {
  constexpr uint32_t kNear = 8;
  const bool for_write = access != Access::kRead;
  uint32_t pinned = 0, dirtied = 0, ahead = 0;
  BlockId last_ahead;
  for (uint32_t i = 0; i < std::min(blocks, kNear); ++i) directory_.prefetch_slot(first + i);
  for (; pinned < blocks; ++pinned) {
    const BlockId block = first + pinned;
    if (pinned + kNear < blocks) directory_.prefetch_slot(block + kNear);
    const FrameId frame = directory_.find(block);
    if (frame == kNoFrame) break;
    AtomicPinWord& pin_word = directory_.word(frame);
    PinWord word = pin_word.load_relaxed();
    bool is_pinned = false;
    while (word.holds(block) && word.state() == FrameState::kResident && !is_pinned)
      is_pinned = pin_word.cas_acquire(word, word.pinned(for_write));
    if (!is_pinned) break;
    if (word.ahead()) {
      ++ahead;
      last_ahead = block;
    }
    const bool was_clean = for_write && !word.dirty();
    dirtied += was_clean;
    out[pinned] = {.data = context_.data({frame, block}), .was_clean = was_clean, .frame = frame};
    if (context_.options.use_observer) [[unlikely]]
      context_.options.use_observer->used(block);
  }
  if (pinned > 0) count(Counter::shared_hits, pinned);
  if (dirtied > 0) count(Counter::bytes_dirtied, dirtied * context_.block_bytes());
  if (ahead == 0) return pinned;
  partition_of(first).organisation().ahead_used(ahead);
  count(Counter::readahead_hits, ahead);
  if (access != Access::kOverwrite)
    read_ahead(client, client.streams.on_ahead_use(last_ahead, ahead), access);
  return pinned;
}

// One miss of all of them: who waits for the first one then waits for all.
void SharedCacheParts::miss_run(Client& client, BlockId first, uint32_t blocks) {
  if (blocks < 2 || context_.owner_fills || context_.placement.has_address(first) ||
      directory_.find(first) != kNoFrame)
    return;
  bring_unit(client, {first, blocks}, Access::kRead);
  if (directory_.find(first) == kNoFrame) return;
  telemetry::count_miss(first.value);
  read_ahead(client, client.streams.on_miss({first, first + (blocks - 1)}, first), Access::kRead);
}

// Frames for those that are not there, up to the first that is: each is being filled, by this client. How many.
uint32_t SharedCacheParts::claim(Client& client, BlockId first, uint32_t blocks, FrameId* frames) {
  Request& request = client.request;
  request.wish = Wish::kClaim;
  request.block = first;
  request.count = blocks;
  request.run = frames;
  Partition& partition = partition_of(first);
  for (uint32_t i = 0; i < blocks; ++i) {
    directory_.prefetch_slot(first + i);
    partition.organisation().prefetch_block(first + i);
  }
  return ask(client, partition) ? static_cast<uint32_t>(request.cursor) : 0;
}

void SharedCacheParts::end_filling(Resident resident, uint64_t flags) {
  AtomicPinWord& pin_word = directory_.word(resident.frame);
  if (pin_word.end_filling(FrameState::kResident, flags)) platform::futex_wake_all(pin_word.futex_half());
}

// Of those that are not there, up to the first that is: frames, which the caller is about to fill. Where the frames'
// owner fills them, or clients take them one by one, none.
uint32_t SharedCacheParts::claim_run(Client& client, BlockId first, uint32_t blocks, Pin* out) {
  if (context_.owner_fills || context_.clients_take) return 0;
  const BlockId last = first + (blocks - 1);
  if (!blocks_.locate_for_fill(first).store || !blocks_.locate_for_fill(last).store) return 0;
  const uint64_t asked_ns = platform::monotonic_ns();
  FrameId frames[kGroupBlocks];
  const uint32_t claimed = claim(client, first, blocks, frames);
  if (claimed == 0) return 0;
  Resident run[kGroupBlocks];
  for (uint32_t i = 0; i < claimed; ++i) run[i] = {frames[i], first + i};
  frames_->install({run, claimed}, Contents::kArbitrary, nullptr, true);
  for (uint32_t i = 0; i < claimed; ++i) {
    context_.tell_of_fill(run[i].block, false);
    end_filling(run[i], PinWord::kReferenced | PinWord::kDirty);
    out[i] = {context_.data(run[i]), true, true, true, frames[i]};
    if (context_.options.use_observer) [[unlikely]]
      context_.options.use_observer->used(run[i].block);
  }
  telemetry::count_misses(first.value, claimed);
  count(Counter::overwrites, claimed);
  count(Counter::bytes_dirtied, claimed * context_.block_bytes());
  (void)telemetry::note_missed(first.value, asked_ns);
  return claimed;
}

// Live, and nothing was ever written to it.
bool SharedCacheParts::is_new(BlockId block) {
  const Backing backing = blocks_.locate_for_fill(block);
  return backing.store != nullptr && !backing.has_contents;
}

// As many blocks as lie cached right before this one, as far as they are new and not there: a program that writes its
// way through gets the more at a time the longer it has been at it, and one that touches a block here and there gets
// that block.
uint32_t SharedCacheParts::new_run(BlockId block) {
  const uint64_t most = std::min<uint64_t>({kZeroRunBytesMax >> context_.options.block_shift,
                                            kGroupBlocks - block.value % kGroupBlocks,
                                            partition_of(block).organisation().run_max(), block.value});
  uint64_t before = 0, run = 1;
  while (before < most && directory_.find(BlockId(block.value - before - 1)) != kNoFrame) ++before;
  while (run < before && directory_.find(block + run) == kNoFrame && is_new(block + run)) ++run;
  return static_cast<uint32_t>(run);
}

// A block that was never written comes with those behind it. They are clean: whoever stores to one says so.
// kAgain: it comes by itself.
SharedCacheParts::Step SharedCacheParts::bring_zeros(Miss& miss) {
  if (!fault_around_ || context_.owner_fills || context_.clients_take || hint(miss).store == nullptr ||
      context_.placement.has_address(miss.block) || !blocks_.is_anonymous(miss.block))
    return Step::kAgain;
  const uint32_t blocks = new_run(miss.block);
  if (blocks < 2) return Step::kAgain;
  FrameId frames[kGroupBlocks];
  miss.client.request.is_unit = true;
  const uint32_t claimed = claim(miss.client, miss.block, blocks, frames);
  miss.client.request.is_unit = false;
  if (claimed == 0) return Step::kAgain;
  Resident run[kGroupBlocks];
  uint32_t zeros = 0;
  for (uint32_t i = 0; i < claimed; ++i) run[i] = {frames[i], miss.block + i};
  while (zeros < claimed && is_new(run[zeros].block)) ++zeros;  // now that nobody else can write it
  if (zeros > 1) frames_->install({run + 1, zeros - 1}, Contents::kZeros, nullptr, false);
  for (uint32_t i = 1; i < claimed; ++i) {
    if (i >= zeros) {
      give_up_fill(miss.client, run[i]);
      continue;
    }
    context_.tell_of_fill(run[i].block, false);
    end_filling(run[i], 0);
    unpin(miss.client, run[i].frame);
  }
  if (zeros > 1) count(Counter::zero_fills, zeros - 1);
  miss.out->frame = frames[0];
  return fill(miss, blocks_.locate_for_fill(miss.block));
}

}  // namespace spw::cache
