#include "access/mapped/block_pool.h"

#include <algorithm>
#include <ranges>

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
      shards_(std::make_unique<Shard[]>(kShards)) {
  limit_.store_relaxed(frame_count);
  for (uint32_t i = 0; i < kShards; ++i) shards_[i].unused.reserve(frame_count / kShards + 1);
  for (uint32_t frame = 0; frame < frame_count; ++frame) {
    places_[frame].store_relaxed(kNoPlace);
    shard_of(FrameId(frame)).unused.push_back(frame);
  }
  for (uint32_t i = 0; i < kShards; ++i) {
    shards_[i].empty = shards_[i].unused.size();
    std::reverse(shards_[i].unused.begin(), shards_[i].unused.end());  // the first frames' places first
  }
}

BlockPool::Place BlockPool::take(FrameId frame) {
  if (const uint32_t place = places_[frame.value].load_relaxed(); place != kNoPlace)
    return {address_of(place), false};
  Shard& shard = shard_of(frame);
  uint32_t place;
  bool was_empty;
  {
    std::lock_guard lock(shard.mutex);
    place = shard.unused.back();
    shard.unused.pop_back();
    was_empty = shard.empty > shard.unused.size();
    shard.empty -= was_empty;
  }
  places_[frame.value].store_relaxed(place);
  if (was_empty) {
    backed_.fetch_add_relaxed(1);
    keep_to_limit();
  }
  return {address_of(place), was_empty};
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

// The last one first, since the last place that was given back is the next that is taken: neighbours that came together
// lie side by side, and those that come in their places do, too.
void BlockPool::give_back(std::span<const cache::Resident> residents) {
  uint32_t in_place = 0;
  for (const cache::Resident& resident : std::ranges::reverse_view(residents)) {
    const uint32_t place = places_[resident.frame.value].load_relaxed();
    if (place == kNoPlace) continue;
    places_[resident.frame.value].store_relaxed(kNoPlace);
    if (place == kInPlace) {
      ++in_place;
      continue;
    }
    Shard& shard = shard_of(resident.frame);
    std::lock_guard lock(shard.mutex);
    shard.unused.push_back(place);
  }
  if (in_place > 0) in_place_.fetch_sub_relaxed(in_place);
  keep_to_limit();
}

void BlockPool::set_limit(uint32_t frames) {
  limit_.store_relaxed(frames);
  keep_to_limit();
}

void BlockPool::empty_some() {
  const uint32_t used = in_place_.load_relaxed() + backed_.load_relaxed(), limit = limit_.load_relaxed();
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
