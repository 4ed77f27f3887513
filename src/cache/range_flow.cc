// Ranges of blocks: prefetch, discard, sync. A range is cut into pieces that one partition can serve.
#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "cache/shared_cache.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::cache {

namespace {
// A range longer than this share of the frames is found by going over
// all frames, which costs less a frame than a lookup.
constexpr uint64_t kScanShare = 8;
// Never-written groups that come along with one that is touched, at most: 2 MiB of the smallest blocks.
constexpr uint64_t kZeroGroupsAheadMax = 8;
// Where blocks are at their own address, those who serve a fault pin
// its block for a moment; a discard waits for them so long.
constexpr uint64_t kDiscardPatienceNs = 20'000'000;
// A partition's limit of frames is never lower.
constexpr uint32_t kPartitionLimitMin = 16;
}  // namespace

// Calls visit(partition, first, count) for every piece: the parts of the range in each group, or for a long range the
// whole of it for every partition. Stops when visit returns false.
template <class Visit>
void SharedCacheParts::for_each_piece(BlockId first, uint64_t count, Visit visit) {
  if (count > kGroupBlocks && count > directory_.shares().frame_count() / kScanShare) {
    for (const auto& partition : partitions_)
      if (!visit(*partition, first, count)) return;
    return;
  }
  for_each_group_piece(first, count, visit);
}

template <class Visit>
void SharedCacheParts::for_each_group_piece(BlockId first, uint64_t count, Visit visit) {
  while (count > 0) {
    uint64_t in_group = kGroupBlocks - (first.value & (kGroupBlocks - 1));
    uint64_t piece = std::min(in_group, count);
    if (!visit(partition_of(first), first, piece)) return;
    first = first + piece;
    count -= piece;
  }
}

// Has one piece served to its end, waiting for transfers as needed.
Status SharedCacheParts::run_to_end(Client& client, Partition& partition, Wish wish, BlockId first,
                                    uint64_t count) {
  Request& request = client.request;
  request.wish = wish;
  request.sequence = request.flush_end = 0;
  return serve_to_end(client, partition, first, count);
}

Status SharedCacheParts::serve_to_end(Client& client, Partition& partition, BlockId first, uint64_t count) {
  Request& request = client.request;
  request.block = first;
  request.count = count;
  request.cursor = 0;
  for (;;) {
    delegate_->execute(partition, request);
    if (request.answer == Answer::kDone) return request.wish == Wish::kFlush ? request.status : Status::ok();
    if (request.answer == Answer::kBlocked) await_progress(partition, request, platform::kNoTimeout);
  }
}

// Waits for frames no longer than a pin would.
void SharedCacheParts::adopt(Client& client, BlockId first, uint64_t count) {
  uint64_t deadline_ns = 0;
  Status write_error;
  for_each_group_piece(first, count, [&](Partition& partition, BlockId piece, uint64_t blocks) {
    Request& request = client.request;
    request.wish = Wish::kAdopt;
    request.block = piece;
    request.count = blocks;
    request.cursor = 0;
    for (;;) {
      delegate_->execute(partition, request);
      if (request.answer == Answer::kDone) return true;
      if (!wait_for_frame(client, partition, &deadline_ns, &write_error)) return false;
    }
  });
  if (deadline_ns != 0) telemetry::note_event(telemetry::TraceEvent::kWaited, first.value);
}

void SharedCacheParts::discard(Client& client, BlockId first, uint64_t count) {
  if (context_.options.observer) context_.options.observer->ended(first, count);
  client.request.patient_until_ns =
      context_.placement.has_address(first) ? platform::monotonic_ns() + kDiscardPatienceNs : 0;
  for_each_piece(first, count, [&](Partition& partition, BlockId piece, uint64_t blocks) {
    (void)run_to_end(client, partition, Wish::kDiscard, piece, blocks);
    return true;
  });
}

bool SharedCacheParts::take_out(Client& client, BlockId first, uint64_t count) {
  bool is_out = true;
  for_each_group_piece(first, count, [&](Partition& partition, BlockId piece, uint64_t blocks) {
    Request& request = client.request;
    request.wish = Wish::kTakeOut;
    request.block = piece;
    request.count = blocks;
    request.cursor = 0;
    delegate_->execute(partition, request);
    is_out &= request.answer == Answer::kDone;
    return true;
  });
  return is_out;
}

void SharedCacheParts::set_frame_limit(uint32_t frames) {
  frames = std::clamp<uint32_t>(frames, partitions_.size() * kPartitionLimitMin,
                                directory_.shares().frame_count());
  for (const auto& partition : partitions_)
    partition->organisation().set_limit(static_cast<uint32_t>(
        uint64_t{directory_.shares().of(partition->id())} * frames / directory_.shares().frame_count()));
  frames_->set_limit(frame_limit());
  telemetry::note_event(telemetry::TraceEvent::kLimit, telemetry::kTraceNoBlock, frame_limit());
}

void SharedCacheParts::note_passed(uint64_t blocks) {
  const uint64_t before = passed_.fetch_add_relaxed(blocks), parts = partitions_.size();
  const auto share = static_cast<uint32_t>((before + blocks) / parts - before / parts);
  if (share == 0) return;
  for (const auto& partition : partitions_) partition->organisation().note_passed(share);
}

uint32_t SharedCacheParts::frame_limit() const {
  uint32_t sum = 0;
  for (const auto& partition : partitions_) sum += partition->organisation().limit();
  return sum;
}

namespace {

// Frames to be free, of `limit` of a partition.
struct Ahead {
  uint64_t low, high;
};
constexpr uint64_t kAheadShareMax = 16;

Ahead ahead_of(uint64_t limit, unsigned low_percent, unsigned high_percent, uint64_t least) {
  least = std::min(least, limit / kAheadShareMax);
  return {low_percent == 0 ? 0 : std::max(limit * low_percent / 100, least),
          high_percent == 0 ? 0 : std::max(limit * high_percent / 100, 2 * least)};
}

}  // namespace

bool SharedCacheParts::make_room(Client& client, unsigned low_percent, unsigned high_percent) {
  bool found_some = false;
  for (const auto& partition : partitions_) {
    const uint64_t limit = partition->organisation().limit(), used = partition->organisation().used_frames();
    const Ahead ahead = ahead_of(limit, low_percent, high_percent, context_.options.ahead_frames_min);
    if (used + ahead.low <= limit) continue;
    client.request.wish = Wish::kTrim;
    client.request.count = limit - ahead.high;
    do {
      delegate_->execute(*partition, client.request);
    } while (client.request.answer == Answer::kMore);
    const bool nothing_moves = client.request.answer == Answer::kBlocked && client.request.queue == nullptr &&
                               !client.request.has_progressed;
    if (!nothing_moves) found_some = true;
  }
  return found_some;
}

// Once under its limit, a partition stays there: whoever takes a frame above it has evicted as many first.
Status SharedCacheParts::evict_to_limit(Client& client) {
  // So that the writes of all partitions are under way before one of them is waited for.
  make_room(client, 0, 0);
  const uint64_t deadline_ns =
      platform::deadline_after(platform::monotonic_ns(), context_.options.frame_wait_ns_max);
  Request& request = client.request;
  for (const auto& partition : partitions_) {
    while (partition->organisation().used_frames() > partition->organisation().limit()) {
      request.wish = Wish::kTrim;
      request.count = partition->organisation().limit();
      delegate_->execute(*partition, request);
      if (request.answer == Answer::kBlocked && !await_progress(*partition, request, deadline_ns))
        return Status::sentence(
            ETIMEDOUT,
            "what is above the new limit of memory cannot be evicted in time: " +
                (request.status ? "it is pinned, or the store is slow" : request.status.message()));
    }
  }
  return Status::ok();
}

void SharedCacheParts::close_store(Client& client, store::Store& store) {
  for (const auto& partition : partitions_) {
    client.request.store = &store;
    (void)run_to_end(client, *partition, Wish::kCloseStore, BlockId(), 0);
  }
  std::lock_guard lock(clients_mutex_);
  for (const auto& fills : fills_) fills->close_store(store);
}

// ---- Sync ----

// Which stores a sync of the range has to reach: those of its ends, which is all of them for a range within one region,
// and for a range that begins or ends outside of any region every store that was written to.
std::vector<store::Store*> SharedCacheParts::stores_of(BlockId first, uint64_t count) {
  std::vector<store::Store*> stores;
  for (BlockId end : {first, first + (count - 1)}) {
    store::Store* read_from = blocks_.locate_for_fill(end).store;
    store::Store* written_to = blocks_.locate_for_writeback(end).store;
    if (read_from == nullptr || written_to == nullptr) return written_stores_.list();
    for (store::Store* store : {read_from, written_to})
      if (std::find(stores.begin(), stores.end(), store) == stores.end()) stores.push_back(store);
  }
  return stores;
}

Status SharedCacheParts::flush(Client& client, BlockId first, uint64_t count) {
  Status result;
  if (count == 0) return result;
  for_each_piece(first, count, [&](Partition& partition, BlockId piece, uint64_t blocks) {
    result = run_to_end(client, partition, Wish::kFlush, piece, blocks);
    return result.is_ok();
  });
  return result;
}

void SharedCacheParts::begin_flush(Client& client, const std::function<BlockRun()>& next,
                                   Flushing* flushing) {
  Request& request = client.request;
  for (BlockRun run = next(); run.count > 0; run = next())
    for_each_group_piece(run.first, run.count, [&](Partition& partition, BlockId piece, uint64_t blocks) {
      auto& begun = flushing->partitions;
      auto known = std::ranges::find(begun, partition.id(), &Flushing::OfPartition::partition);
      if (known == begun.end()) known = begun.insert(begun.end(), {partition.id(), 0, 0});
      request.wish = Wish::kBeginFlush;
      request.sequence = known->sequence;
      request.flush_end = 0;
      (void)serve_to_end(client, partition, piece, blocks);
      known->sequence = request.sequence;
      known->flush_end = request.flush_end;
      return true;
    });
}

Status SharedCacheParts::end_flush(Client& client, Flushing* flushing) {
  Status result;
  while (!try_end_flush(client, flushing, &result))
    await_progress(*partitions_[flushing->partitions.back().partition.value], client.request,
                   platform::kNoTimeout);
  return result;
}

bool SharedCacheParts::try_end_flush(Client& client, Flushing* flushing, Status* status) {
  Request& request = client.request;
  for (auto& left = flushing->partitions; !left.empty(); left.pop_back()) {
    request.wish = Wish::kFlush;
    request.block = BlockId();
    request.count = request.cursor = 0;
    request.sequence = left.back().sequence;
    request.flush_end = left.back().flush_end;
    delegate_->execute(*partitions_[left.back().partition.value], request);
    if (request.answer != Answer::kDone) return false;
    if (!request.status && *status) *status = request.status;
  }
  return true;
}

void SharedCacheParts::await_writes(Client& client, BlockId first, uint64_t count) {
  for_each_piece(first, count, [&](Partition& partition, BlockId piece, uint64_t blocks) {
    (void)run_to_end(client, partition, Wish::kAwaitWrites, piece, blocks);
    return true;
  });
}

// One that is being filled and is dirty is on its way to its own address (place()).
void SharedCacheParts::for_each_unwritten(const std::function<void(Resident)>& visit) const {
  for (uint32_t i = 0; i < directory_.shares().frame_count(); ++i) {
    const PinWord word = directory_.word(FrameId(i)).load_acquire();
    if (word.dirty() || word.writing()) visit({FrameId(i), word.block()});
  }
}

bool SharedCacheParts::is_dirty(BlockId block) const {
  const FrameId frame = directory_.find(block);
  if (frame == kNoFrame) return false;
  const PinWord word = directory_.word(frame).load_acquire();
  return word.holds(block) && word.dirty();
}

Status SharedCacheParts::sync(Client& client, BlockId first, uint64_t count) {
  if (count == 0) return Status::ok();
  Status result = flush(client, first, count);
  if (!result) return result;
  for (store::Store* store : stores_of(first, count)) {
    store::Request request;
    request.op = store::Op::kSync;
    if (Status synced = store->transfer(request); !synced && result) result = synced;
  }
  return result;
}

// ---- Ahead of need ----

// Counts a reference to a block that is there and clean, and makes it dirty.
bool SharedCacheParts::hold_clean(BlockId block, FrameId* frame) {
  *frame = directory_.find(block);
  if (*frame == kNoFrame) return false;
  AtomicPinWord& pin_word = directory_.word(*frame);
  PinWord word = pin_word.load_relaxed();
  do {
    if (!word.holds(block) || word.state() != FrameState::kResident || word.dirty()) return false;
  } while (!pin_word.cas_acquire(word, word.joined()));
  // Where it is can be known only of a block that is held.
  if (context_.placement.is_placed({*frame, block}) && !pin_word.mark_dirty().dirty()) return true;
  (void)pin_word.unpin();
  return false;
}

// Neighbours are told of together: where blocks lie at their own
// addresses that is a system call. Few are held at a time.
void SharedCacheParts::dirty_resident(BlockId first, uint64_t count) {
  Resident run[kGroupBlocks];
  const size_t held_max = std::clamp<size_t>(frames_per_partition() / kAheadShare, 1, kGroupBlocks);
  size_t held = 0;
  const auto end_run = [&] {
    if (held == 0) return;
    frames_->allow_stores({run, held});
    for (size_t i = 0; i < held; ++i) directory_.word(run[i].frame).unpin();
    telemetry::count(telemetry::Counter::bytes_dirtied, held * context_.block_bytes());
    held = 0;
  };
  for (uint64_t i = 0; i < count; ++i) {
    run[held].block = first + i;
    if (hold_clean(run[held].block, &run[held].frame))
      ++held;
    else
      end_run();
    if (held == held_max) end_run();
  }
  end_run();
}

void SharedCacheParts::prefetch(Client& client, BlockId first, uint64_t count) {
  count = std::min<uint64_t>(count, directory_.shares().frame_count() / kAheadShare);
  while (count > 0) {
    auto piece = static_cast<uint32_t>(std::min(count, kGroupBlocks));
    read_ahead_whole(client, {first, 1, piece}, Access::kRead);
    first = first + piece;
    count -= piece;
  }
}

void SharedCacheParts::prefetch_at_once(Client& client, BlockId first, uint64_t count) {
  const WaitsForNobody guard(client);
  prefetch(client, first, count);
}

// As much of it on both sides of the block as one request can bring:
// what is not there, and lies side by side on the store.
FaultAround::Unit SharedCacheParts::absent_part(FaultAround::Unit unit, const Miss& miss) {
  const auto joins = [&](uint64_t other) {
    const uint64_t distance = (other - miss.block.value) << context_.options.block_shift;  // modulo 2^64
    const Backing there = blocks_.locate_for_fill(BlockId(other));
    return there.has_contents && there.store == miss.hint->store &&
           there.offset_bytes == miss.hint->offset_bytes + distance &&
           directory_.find(BlockId(other)) == kNoFrame;
  };
  uint64_t first = miss.block.value, last = first;
  while (first > unit.first.value && joins(first - 1)) --first;
  while (last + 1 < unit.first.value + unit.count && joins(last + 1)) ++last;
  return {BlockId(first), static_cast<uint32_t>(last - first + 1)};
}

// A missing block with what is to come along with it: what its region says, else what misses have shown. By itself
// where nothing is. Nor is there for a fault at a store where blocks lie at their own addresses: who waits there would
// go on before it may, and fault again.
FaultAround::Unit SharedCacheParts::unit_to_bring(Miss& miss) {
  const BlockId block = miss.block;
  FaultAround::Unit unit{block, 1};
  const uint64_t chosen = blocks_.fault_around_blocks(block);
  if ((chosen == 0 && !fault_around_) || miss.out->frame != kNoFrame || !hint(miss).has_contents) return unit;
  if (chosen > 0)
    unit.count = static_cast<uint32_t>(std::min(chosen, kGroupBlocks));
  else
    unit = fault_around_->on_miss(block);
  miss.is_other_half = unit.is_other_half;
  const bool is_store_fault = miss.access == Access::kWrite && context_.placement.has_address(block) &&
                              miss.client.uses == Uses::kUnseen;
  if (unit.count == 1 || is_store_fault) return {block, 1};
  unit.first = BlockId(block.value & ~uint64_t{unit.count - 1});
  return absent_part(unit, miss);
}

// By one request, without waiting.
void SharedCacheParts::bring_unit(Client& client, FaultAround::Unit unit, Access access) {
  client.request.is_unit = true;
  read_ahead_whole(client, {unit.first, 1, unit.count}, access);
  client.request.is_unit = false;
}

void SharedCacheParts::note_unit_missed(Miss& miss, FaultAround::Unit unit) {
  if (std::exchange(miss.is_other_half, false)) return;
  const BlockId last = unit.first + (unit.count - 1);
  read_ahead(miss.client, miss.client.streams.on_miss({unit.first, last}, miss.block), miss.access_ahead());
}

// Brings the block in with what is to come along with it. kAgain: nothing is to, or it could not be asked for.
SharedCacheParts::Step SharedCacheParts::fault_around(Miss& miss) {
  const FaultAround::Unit unit = unit_to_bring(miss);
  if (fault_around_ && miss.hint && miss.hint->has_contents) {
    fault_around_->begin_wait();
    miss.is_waiting = true;
  }
  if (miss.hint && !miss.hint->has_contents) return bring_zeros(miss);
  if (unit.count == 1) return Step::kAgain;
  bring_unit(miss.client, unit, miss.access_ahead());
  miss.out->frame = directory_.find(miss.block);
  if (miss.out->frame == kNoFrame) return Step::kAgain;
  AtomicPinWord& pin_word = directory_.word(miss.out->frame);
  PinWord word = pin_word.load_acquire();
  do {
    const bool is_coming = word.state() == FrameState::kFilling || word.state() == FrameState::kResident;
    if (!word.holds(miss.block) || !is_coming) return Step::kAgain;
  } while (!pin_word.cas_acquire(word, word.joined()));
  note_unit_missed(miss, unit);
  const Step step = await_filled(miss);
  miss.out->was_miss = step == Step::kPinned;
  if (miss.out->was_miss) telemetry::count_miss(miss.block.value);
  return step;
}

// A never-written group has just been filled. As many more behind it as there are cached ones right before it.
void SharedCacheParts::zeros_ahead(Client& client, BlockId block) {
  const uint64_t group = group_of(block);
  const auto first_of = [](uint64_t g) { return BlockId(g << kGroupShift); };
  uint64_t before = 0;
  while (before < std::min(group, kZeroGroupsAheadMax) &&
         directory_.find(first_of(group - before - 1)) != kNoFrame)
    ++before;
  const Client::Reach reach = client.reach;
  for (uint64_t ahead = 1; ahead <= before; ++ahead)
    if (!reach.is_given() || first_of(group + ahead) < reach.end)
      bring_in_zeros(client, first_of(group + ahead));
}

void SharedCacheParts::bring_in_zeros(Client& client, BlockId block) {
  Request& request = client.request;
  request.wish = Wish::kZerosAhead;
  request.block = block;
  (void)ask(client, partition_of(block));
}

}  // namespace spw::cache
