#include "cache/extents/extent_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "platform/process_barrier.h"
#include "platform/time.h"

namespace spw::cache {

namespace {

// Pins end; those of who discards himself do not.
constexpr uint64_t kPatienceNs = 200'000'000;
// The mover tries again every few milliseconds. What it cannot move for so long is not its own alone (pages in common
// with a forked child, rights that differ within it), perhaps for ever.
constexpr uint64_t kMovesFailNs = 200'000'000;
constexpr int kTriesMax = 1000;  // to find a range without extents

// [first, last] of extents in one word; 0: none.
uint64_t published(uint64_t first, uint64_t last) { return (first + 1) << 32 | (last & 0xffffffff); }

// While it lives, the client asks the block cache for blocks of these extents.
class InExtents {
 public:
  InExtents(Client& client, uint64_t first, uint64_t last) : client_(client) {
    client_.in_extents.store_relaxed(published(first, last));
    std::atomic_signal_fence(std::memory_order_seq_cst);  // process_barrier() does the rest
  }
  ~InExtents() { client_.in_extents.store_release(0); }
  InExtents(const InExtents&) = delete;
  InExtents& operator=(const InExtents&) = delete;

 private:
  Client& client_;
};

}  // namespace

// An extent is of whole groups, which belong to one partition each.
bool ExtentCache::is_possible(unsigned block_shift) {
  return (kGroupBlocks << block_shift) <= kExtentBytes && platform::enable_process_barrier();
}

Result<std::unique_ptr<SharedCache>> ExtentCache::around(std::unique_ptr<SharedCache> blocks,
                                                         BlockSource& source,
                                                         std::unique_ptr<ExtentMemory> memory,
                                                         const ExtentMover::Options& options) {
  SPW_CHECK(is_possible(options.block_shift));
  auto extents = Extents::create(options.block_shift, *memory);
  if (!extents) return extents.status();
  std::unique_ptr<ExtentCache> made(
      new ExtentCache(std::move(blocks), source, std::move(memory), std::move(*extents), options));
  auto client = made->open_client(Uses::kUnseen);
  if (!client) return client.status();
  auto thread = platform::Thread::start([cache = made.get(), client = *client] {
    cache->mover_.run(*client);
    cache->close_client(client);
  });
  if (!thread) return thread.status();
  made->thread_ = std::move(*thread);
  return std::unique_ptr<SharedCache>(std::move(made));
}

ExtentCache::ExtentCache(std::unique_ptr<SharedCache> blocks, BlockSource& source,
                         std::unique_ptr<ExtentMemory> memory, std::unique_ptr<Extents> extents,
                         const ExtentMover::Options& options)
    : blocks_(std::move(blocks)),
      memory_(std::move(memory)),
      extents_(std::move(extents)),
      first_frame_(blocks_->frame_count()),
      limit_(blocks_->frame_limit()),
      after_misses_(options.after_misses),
      mover_(options, *extents_, *blocks_, source, [this](uint64_t extent) { quiesce(extent); }) {}

ExtentCache::~ExtentCache() {
  mover_.stop();
  thread_.join();
}

Result<Client*> ExtentCache::open_client(Uses uses) {
  auto client = blocks_->open_client(uses);
  if (!client) return client;
  std::lock_guard lock(clients_mutex_);
  if (std::ranges::find(clients_, *client) == clients_.end()) clients_.push_back(*client);
  return client;
}

// By the mover, which has claimed the extent.
void ExtentCache::quiesce(uint64_t extent) {
  platform::process_barrier();
  std::lock_guard lock(clients_mutex_);
  for (const Client* client : clients_) {
    const uint64_t seen = client->in_extents.load_acquire();
    const uint64_t first = (seen >> 32) - 1, last = seen & 0xffffffff;
    if (seen == 0 || extent < first || extent > last) continue;
    // It may wait for a disk: the claim is not worth that.
    (void)extents_->unclaim(extent);
    return;
  }
}

// ---- Pins ----

bool ExtentCache::pin_extent(uint64_t extent, BlockId block, Pin* out) {
  const auto slot = extents_->pin(extent);
  if (!slot) return false;
  *out = Pin();
  out->data = memory_->address_of(block);
  out->frame = frame_of(*slot);
  out->is_extent = true;
  return true;
}

// Whether the extent is none, while the client is in there: the block cache goes no further by itself.
bool ExtentCache::enter(Client& client, uint64_t extent) {
  if (!extents_->is_none(extent)) return false;
  client.reach = {extents_->first_of(extent), extents_->first_of(extent + 1)};
  return true;
}

template <class OfBlocks>
auto ExtentCache::pin_by(Client& client, BlockId block, Pin* out, OfBlocks of_blocks) {
  using Answer = decltype(of_blocks());
  if (!may_be_extent(block)) return std::optional<Answer>(of_blocks());
  const uint64_t extent = extents_->of(block);
  for (;;) {
    if (extents_->word(extent).load().is_wished() && !blocks_->is_resident(block))
      extents_->await_wish(extent);
    std::optional<Answer> answer;
    {
      const InExtents in(client, extent, extent);
      if (enter(client, extent)) answer = of_blocks();
      client.reach = {};
    }
    if (answer) {
      if (out->was_miss) extents_->note_miss(extent);
      if (after_misses_ && out->was_miss) client.stream_end = extents_->first_of(extent + 1);
      go_on(client);
      return answer;
    }
    if (pin_extent(extent, block, out)) return answer;
  }
}

// What the block cache has left to be done beyond the extent that its client was in; and streams that it has found.
void ExtentCache::go_on(Client& client) {
  const BlockRun rest = std::exchange(client.beyond, {});
  if (const BlockId end = std::exchange(client.stream_end, BlockId(0)); end.value != 0) {
    const uint64_t next = extents_->of(rest.count > 0 ? rest.first : end + (extents_->blocks() - 1));
    if (next < extents_->count()) extents_->wish({next, 1});
  }
  if (rest.count > 0) prefetch(client, rest.first, rest.count);
}

Status ExtentCache::pin(Client& client, BlockId block, Access access, Pin* out) {
  return pin_by(client, block, out, [&] { return blocks_->pin(client, block, access, out); })
      .value_or(Status());
}

Status ExtentCache::pin_quietly(Client& client, BlockId block, Access access, Pin* out) {
  return pin_by(client, block, out, [&] { return blocks_->pin_quietly(client, block, access, out); })
      .value_or(Status());
}

Status ExtentCache::pin_loose(Client& client, BlockId block, Access access, Pin* out) {
  return pin_by(client, block, out, [&] { return blocks_->pin_loose(client, block, access, out); })
      .value_or(Status());
}

Status ExtentCache::pin_expecting(Client& client, BlockId block, Pin* out) {
  return pin_by(client, block, out, [&] { return blocks_->pin_expecting(client, block, out); })
      .value_or(Status());
}

// By who waits for nobody: an extent is pinned later.
template <class OfBlocks>
Begun ExtentCache::begin_by(Client& client, BlockId block, OfBlocks of_blocks) {
  if (!may_be_extent(block)) return of_blocks();
  const uint64_t extent = extents_->of(block);
  const InExtents in(client, extent, extent);
  if (!enter(client, extent)) return Begun::kWouldWait;
  const Begun begun = of_blocks();
  client.reach = {};
  return begun;
}

Begun ExtentCache::begin_pin(Client& client, Fills& fills, BlockId block, Access access, uint64_t tag,
                             Pin* out, Status* status) {
  return begin_by(client, block,
                  [&] { return blocks_->begin_pin(client, fills, block, access, tag, out, status); });
}

Begun ExtentCache::try_pin(Client& client, BlockId block, Access access, Pin* out, Status* status) {
  return begin_by(client, block, [&] { return blocks_->try_pin(client, block, access, out, status); });
}

bool ExtentCache::pin_present(Client& client, BlockId block, Access access, Pin* out) {
  return pin_by(client, block, out, [&] { return blocks_->pin_present(client, block, access, out); })
      .value_or(true);
}

uint64_t ExtentCache::references(FrameId frame) const {
  if (!is_extent(frame)) return blocks_->references(frame);
  const uint64_t extent = extents_->slot(frame.value - first_frame_).extent.load_relaxed();
  return extents_->word(extent).load().pins();
}

void ExtentCache::unpin(Client& client, FrameId frame) {
  if (!is_extent(frame)) return blocks_->unpin(client, frame);
  extents_->unpin(frame.value - first_frame_);
}

bool ExtentCache::is_resident(BlockId block) const {
  if (!may_be_extent(block)) return blocks_->is_resident(block);
  const ExtentState state = extents_->word(extents_->of(block)).load().state();
  return state == ExtentState::kPlaced || state == ExtentState::kParked || blocks_->is_resident(block);
}

// ---- Ahead of need ----

void ExtentCache::bring_in_zeros(Client& client, BlockId block) {
  if (!may_be_extent(block)) return blocks_->bring_in_zeros(client, block);
  const uint64_t extent = extents_->of(block);
  const InExtents in(client, extent, extent);
  if (extents_->is_none(extent)) blocks_->bring_in_zeros(client, block);
}

// What is, or becomes, an extent is left to that.
void ExtentCache::prefetch(Client& client, BlockId first, uint64_t count) {
  const BlockId end = first + count;
  while (first < end) {
    const uint64_t extent = extents_->of(first);
    const BlockId piece_end = may_be_extent(first) ? std::min(end, extents_->first_of(extent + 1)) : end;
    if (may_be_extent(first)) {
      const InExtents in(client, extent, extent);
      const ExtentWord seen = extents_->unclaim(extent);
      if (seen.state() == ExtentState::kNone && !seen.is_wished())
        blocks_->prefetch(client, first, piece_end - first);
    } else {
      blocks_->prefetch(client, first, piece_end - first);
    }
    first = piece_end;
  }
}

void ExtentCache::prefetch_at_once(Client& client, BlockId first, uint64_t count) {
  const bool may_wait = std::exchange(client.may_wait, false);
  prefetch(client, first, count);
  client.may_wait = may_wait;
}

// ---- Ranges ----

// The first and the last that have any of the blocks, of which the first may be an extent's.
std::pair<uint64_t, uint64_t> ExtentCache::extents_around(BlockId first, uint64_t count) const {
  return {extents_->of(first), std::min(extents_->of(first + (count - 1)), extents_->count() - 1)};
}

// Until none of those that are extents in [first, last] is one. `begin`, `count`: the blocks that are meant.
void ExtentCache::settle(uint64_t first, uint64_t last, BlockId begin, uint64_t count, Settle how) {
  const uint64_t since_ns = platform::monotonic_ns();
  const auto ask = [&](uint64_t extent) {
    const BlockId start = extents_->first_of(extent), end = extents_->first_of(extent + 1);
    const bool is_whole = start >= begin && end.value <= begin.value + count;
    extents_->settle(extent, how == Settle::kDropped && is_whole ? how : Settle::kWritten);
  };
  extents_->for_each(first, last, ask);
  extents_->for_each(first, last, [&](uint64_t extent) {
    const BlockId start = extents_->first_of(extent), end = extents_->first_of(extent + 1);
    for (;;) {
      const ExtentWord seen = extents_->word(extent).load();
      if (seen.state() == ExtentState::kNone || seen.state() == ExtentState::kClaimed) return;
      const uint64_t now_ns = platform::monotonic_ns(), failing_ns = extents_->failing_since_ns(seen);
      const bool is_kept = seen.pins() > 0 || extents_->are_held();
      if ((is_kept && now_ns - since_ns > kPatienceNs) ||
          (failing_ns != 0 && now_ns - std::max(failing_ns, since_ns) > kMovesFailNs)) {
        if (how == Settle::kDropped) zero(extent, std::max(start, begin), std::min(end, begin + count));
        return;
      }
      ask(extent);
      extents_->word(extent).await_change(seen);
    }
  });
}

// Of an extent that somebody pins for long, or that cannot be moved. It is not dropped later, when the range may be in
// use again.
void ExtentCache::zero(uint64_t extent, BlockId first, BlockId end) {
  const auto slot = extents_->pin(extent);
  if (!slot) return;
  extents_->slot(*slot).settle.store_relaxed(0);
  memory_->zero(memory_->address_of(first),
                static_cast<uint64_t>(memory_->address_of(end) - memory_->address_of(first)));
  extents_->unpin(*slot);
}

template <class OfBlocks>
auto ExtentCache::on_range(Client& client, BlockId first, uint64_t count, Settle how, OfBlocks of_blocks) {
  if (count == 0 || !may_be_extent(first)) return of_blocks();
  const auto [from, to] = extents_around(first, count);
  for (int tries = 0;; ++tries) {
    settle(from, to, first, count, how);
    const InExtents in(client, from, to);
    bool has_some = false;
    extents_->for_each(from, to, [&](uint64_t extent) {
      const ExtentWord seen = extents_->unclaim(extent);
      has_some |=
          seen.state() != ExtentState::kNone && seen.pins() == 0 && extents_->failing_since_ns(seen) == 0;
    });
    if (!has_some || extents_->are_held() || tries == kTriesMax) return of_blocks();
  }
}

void ExtentCache::adopt(Client& client, BlockId first, uint64_t count) {
  on_range(client, first, count, Settle::kWritten, [&] { blocks_->adopt(client, first, count); });
}

void ExtentCache::discard(Client& client, BlockId first, uint64_t count) {
  on_range(client, first, count, Settle::kDropped, [&] { blocks_->discard(client, first, count); });
}

Status ExtentCache::flush(Client& client, BlockId first, uint64_t count) {
  return on_range(client, first, count, Settle::kWritten,
                  [&] { return blocks_->flush(client, first, count); });
}

Status ExtentCache::sync(Client& client, BlockId first, uint64_t count) {
  return on_range(client, first, count, Settle::kWritten,
                  [&] { return blocks_->sync(client, first, count); });
}

void ExtentCache::await_writes(Client& client, BlockId first, uint64_t count) {
  blocks_->await_writes(client, first, count);
  if (count == 0 || !may_be_extent(first)) return;
  const auto [from, to] = extents_around(first, count);
  extents_->for_each(from, to, [&](uint64_t extent) {
    for (;;) {
      const ExtentWord seen = extents_->word(extent).load();
      if (seen.state() != ExtentState::kWriting) return;
      extents_->word(extent).await_change(seen);
    }
  });
}

// Of files, which are no extents.
void ExtentCache::begin_flush(Client& client, const std::function<BlockRun()>& next, Flushing* flushing) {
  blocks_->begin_flush(client, next, flushing);
}

void ExtentCache::keep_small(Client& client, BlockId first, uint64_t count) {
  if (count == 0 || !may_be_extent(first)) return;
  const auto [from, to] = extents_around(first, count);
  on_range(client, first, count, Settle::kWritten, [] {});
  for (uint64_t extent = from; extent <= to; ++extent) {
    ExtentWord seen = extents_->word(extent).load();
    while (!seen.is_small() && !extents_->word(extent).change(&seen, seen.as_small())) {
    }
  }
}

// Some may be on their way while it looks.
void ExtentCache::begin_fork(Client& client) {
  extents_->begin_fork();
  const uint64_t last = extents_->count() - 1;
  for (bool are_still = false; !are_still;) {
    extents_->hold(false);
    on_range(client, BlockId(0), extents_->count() * extents_->blocks(), Settle::kWritten, [] {});
    extents_->hold(true);
    are_still = true;
    extents_->for_each(0, last, [&](uint64_t extent) {
      const ExtentState state = extents_->unclaim(extent).state();
      are_still &= state == ExtentState::kNone || state == ExtentState::kPlaced;
    });
  }
}

// ---- Frames ----

void ExtentCache::set_frame_limit(uint32_t frames) {
  limit_.store_relaxed(frames);
  mover_.set_limit(frames);
}

Status ExtentCache::evict_to_limit(Client& client) {
  constexpr uint64_t kLookAgainNs = 1'000'000, kWaitNs = 30'000'000'000;
  const uint64_t deadline_ns = platform::monotonic_ns() + kWaitNs;
  while (mover_.is_above_limit()) {
    if (platform::monotonic_ns() > deadline_ns)
      return Status::sentence(ETIMEDOUT, "extents above the new limit of memory cannot be evicted in time");
    platform::sleep_ns(kLookAgainNs);
  }
  return blocks_->evict_to_limit(client);
}

uint32_t ExtentCache::occupied_frames() const {
  return blocks_->occupied_frames() + mover_.slots_with_memory() * extents_->blocks();
}

uint32_t ExtentCache::peak_frames() const {
  return std::min(blocks_->peak_frames() + mover_.slots_peak() * extents_->blocks(), blocks_->frame_count());
}

uint64_t ExtentCache::metadata_bytes() const { return blocks_->metadata_bytes() + mover_.metadata_bytes(); }

}  // namespace spw::cache
