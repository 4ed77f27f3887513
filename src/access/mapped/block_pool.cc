#include "access/mapped/block_pool.h"

#include <algorithm>

#include "base/need.h"

namespace spw::access {

Result<std::unique_ptr<BlockPool>> BlockPool::create(uint32_t frame_count, unsigned block_shift) {
  const uint64_t bytes = uint64_t{frame_count} << block_shift;
  auto file = platform::create_memory_file("spillway-blocks", bytes);
  if (!file) return file.status();
  auto memory =
      platform::map_file(*file, 0, bytes, platform::Protection::kReadWrite, uint64_t{1} << block_shift);
  if (!memory) return memory.status();
  // It would be memory of places that no frame has.
  if (uint64_t{1} << block_shift < kHugePageBytes)
    (void)platform::advise(memory->data(), bytes, platform::Advice::kNoHugePage);
  // Shared memory would let a forked child write into its parent's blocks.
  if (Status status = platform::advise(memory->data(), bytes, platform::Advice::kDontFork); !status)
    return status;
  return std::unique_ptr<BlockPool>(
      new BlockPool(std::move(*file), std::move(*memory), frame_count, block_shift));
}

BlockPool::BlockPool(platform::File file, platform::Mapping memory, uint32_t frame_count,
                     unsigned block_shift)
    : file_(std::move(file)),
      memory_(std::move(memory)),
      block_shift_(block_shift),
      emptied_min_(std::clamp<uint32_t>(kEmptiedBytes >> block_shift, 1, kEmptiedTogether)),
      places_(std::make_unique<Atomic<uint32_t>[]>(frame_count)),
      unused_at_(std::make_unique<uint32_t[]>(frame_count)),
      shards_(std::make_unique<Shard[]>(kShards)) {
  limit_.store_relaxed(frame_count);
  for (uint32_t i = 0; i < kShards; ++i) shards_[i].unused.reserve(frame_count / kShards + 1);
  for (uint32_t frame = 0; frame < frame_count; ++frame) {
    places_[frame].store_relaxed(kNoPlace);
    put(shard_of(FrameId(frame)), frame);
  }
  for (uint32_t i = 0; i < kShards; ++i) shards_[i].empty = shards_[i].unused.size();
}

void BlockPool::put(Shard& shard, uint32_t place) {
  unused_at_[place] = static_cast<uint32_t>(shard.unused.size());
  shard.unused.push_back(place);
}

// The frame's own place, unless that would take memory for which there is no room while another's is kept.
uint32_t BlockPool::choose(const Shard& shard, uint32_t frame, bool rather_kept) const {
  const size_t last = shard.unused.size() - 1;
  const uint32_t own = unused_at_[frame];
  const bool is_unused = own <= last && shard.unused[own] == frame;
  const bool is_any_kept = shard.unused.size() > shard.empty;
  const bool may_be_empty = !is_any_kept || (!rather_kept && has_room());
  return static_cast<uint32_t>(is_unused && (own >= shard.empty || may_be_empty) ? own : last);
}

// The last one of those without memory, and of those with it, stands in its stead.
uint32_t BlockPool::take_out(Shard& shard, uint32_t at, bool is_empty) {
  const uint32_t place = shard.unused[at];
  const auto stand_in = [&](size_t from) {
    const auto last = static_cast<uint32_t>(from);
    if (last != at) unused_at_[shard.unused[at] = shard.unused[last]] = at;
    at = last;
  };
  if (is_empty) stand_in(--shard.empty);
  stand_in(shard.unused.size() - 1);
  shard.unused.pop_back();
  return place;
}

BlockPool::Place BlockPool::take(FrameId frame, bool rather_kept) {
  if (const uint32_t place = places_[frame.value].load_relaxed(); place != kNoPlace)
    return {address_of(place), false};
  Shard& shard = shard_of(frame);
  uint32_t place;
  bool was_empty;
  {
    std::lock_guard lock(shard.mutex);
    const uint32_t at = choose(shard, frame.value, rather_kept);
    was_empty = at < shard.empty;
    place = take_out(shard, at, was_empty);
  }
  places_[frame.value].store_relaxed(place);
  if (was_empty) {
    backed_.fetch_add_relaxed(1);
    keep_to_limit();
  }
  return {address_of(place), was_empty};
}

std::byte* BlockPool::take_instead(FrameId frame) {
  if (kept_for_lifts_.load_relaxed() == 0)
    kept_for_lifts_.store_relaxed(std::min(limit_.load_relaxed() / kLiftsShare, kLiftsMax));
  places_[frame.value].store_relaxed(kNoPlace);
  in_place_.fetch_sub_relaxed(1);
  return take(frame, true).data;
}

void BlockPool::put_back(uint32_t place) {
  Shard& shard = shard_of(FrameId(place));
  std::lock_guard lock(shard.mutex);
  put(shard, place);
}

void BlockPool::give_back(std::byte* place) {
  put_back(static_cast<uint32_t>(static_cast<uint64_t>(place - base()) >> block_shift_));
  keep_to_limit();
}

void BlockPool::note_in_place(std::span<const cache::Resident> residents) {
  uint32_t more = 0;
  for (const cache::Resident& resident : residents) {
    Atomic<uint32_t>& place = places_[resident.frame.value];
    more += place.load_relaxed() != kInPlace;
    place.store_relaxed(kInPlace);
  }
  in_place_.fetch_add_relaxed(more);
  keep_to_limit();
}

void BlockPool::give_back(std::span<const cache::Resident> residents) {
  uint32_t in_place = 0;
  for (const cache::Resident& resident : residents) {
    const uint32_t place = places_[resident.frame.value].load_relaxed();
    if (place == kNoPlace) continue;
    places_[resident.frame.value].store_relaxed(kNoPlace);
    if (place == kInPlace) {
      ++in_place;
    } else {
      put_back(place);
    }
  }
  if (in_place > 0) in_place_.fetch_sub_relaxed(in_place);
  keep_to_limit();
}

void BlockPool::set_limit(uint32_t frames) {
  limit_.store_relaxed(frames);
  keep_to_limit();
}

void BlockPool::empty_some() {
  const uint32_t used = with_memory(), limit = most_with_memory();
  uint32_t wanted = std::max(used > limit ? used - limit : 0, emptied_min_);
  const uint32_t first = turn_.fetch_add_relaxed(1);
  for (uint32_t i = 0; i < kShards && wanted > 0; ++i)
    wanted -= empty_oldest(shards_[(first + i) % kShards], wanted);
}

// Under the lock: nobody takes them meanwhile.
uint32_t BlockPool::empty_oldest(Shard& shard, uint32_t most) {
  std::lock_guard lock(shard.mutex);
  const size_t end = std::min<size_t>(shard.unused.size(), shard.empty + most);
  uint32_t emptied = 0;
  while (shard.empty < end) {
    uint32_t places[kEmptiedTogether];
    const size_t count = std::min<size_t>(end - shard.empty, kEmptiedTogether);
    std::copy_n(shard.unused.begin() + static_cast<ptrdiff_t>(shard.empty), count, places);
    remove_memory({places, count});
    shard.empty += count;
    emptied += static_cast<uint32_t>(count);
  }
  backed_.fetch_sub_relaxed(emptied);
  return emptied;
}

// Neighbours by one call. What stayed would be memory beyond the limit, and no zeros for who takes the place next.
void BlockPool::remove_memory(std::span<uint32_t> places) const {
  std::sort(places.begin(), places.end());
  for (size_t first = 0, next = 1; first < places.size(); first = next, ++next) {
    while (next < places.size() && places[next] == places[next - 1] + 1) ++next;
    need(platform::advise(address_of(places[first]), uint64_t{next - first} << block_shift_,
                          platform::Advice::kRemove));
  }
}

}  // namespace spw::access
