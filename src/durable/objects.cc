#include "durable/objects.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace spw::durable {

namespace {

constexpr uint64_t kGrowBytesMin = kMiB;
constexpr uint64_t kGrowShare = 8;  // by an eighth at least, so that a region that grows does so rarely

Status damaged_state(uint64_t chunk, uint64_t index) {
  return Status::sentence(EILSEQ, "the persistent region is damaged: the state of object " +
                                      std::to_string(index) + " in chunk " + std::to_string(chunk) +
                                      " is neither free nor allocated; restore the file from a copy");
}

// The smallest class that holds so many bytes; kClasses: none does.
unsigned class_for(uint64_t bytes) {
  return static_cast<unsigned>(std::lower_bound(std::begin(kObjectBytes), std::end(kObjectBytes), bytes) -
                               std::begin(kObjectBytes));
}

}  // namespace

ChunkRun chunk_run(const RegionView& region, uint64_t chunk) {
  const uint64_t bits = region.chunks()[chunk];
  ChunkRun run{ChunkWord::of(bits)};
  const ChunkWord word = run.word;
  const auto bad = [&](const char* fault) {
    run.fault = fault;
    return run;
  };
  if (!is_checked_word(bits, chunk_place(region.header(), chunk)))
    return bad("a word of a chunk that is damaged");
  const bool has_run = word.kind == ChunkKind::kLarge || word.kind == ChunkKind::kLog;
  if (!has_run && word.kind != ChunkKind::kFree && word.kind != ChunkKind::kRest &&
      word.kind != ChunkKind::kObjects)
    return bad("a kind of chunk that does not exist");
  if (word.size_class >= (word.kind == ChunkKind::kObjects ? kClasses : 1))
    return bad("a size class that does not exist");
  if (!has_run && word.chunks != (word.kind == ChunkKind::kObjects ? 1 : 0))
    return bad("a run of chunks of a kind that has none");
  if (!has_run) return run;
  const uint64_t left = region.chunk_count() - chunk;
  if (word.chunks == 0 || word.chunks > left) return bad("a run of chunks ends past the end of the file");
  if (word.kind == ChunkKind::kLarge) {
    const StateBytes states(region.header(), chunk);
    const std::byte state = *region.chunk_at(chunk);
    if (!states.is_one(0, state)) return bad("the state of a large object is neither free nor allocated");
    run.is_live = state == states.allocated(0);
  }
  const auto is_rest = [&region](uint64_t at) {
    return region.chunks()[at] == ChunkWord{ChunkKind::kRest}.word(chunk_place(region.header(), at));
  };
  while (run.chunks < word.chunks && is_rest(chunk + run.chunks)) ++run.chunks;
  // A log's, and those of an object that is gone, go to others one by one, and the first word stays until it does.
  if (run.is_live && run.chunks != word.chunks) return bad("a large object has chunks of others in it");
  return run;
}

Status check_chunks(const RegionView& region) {
  for (uint64_t chunk = 0; chunk < region.chunk_count();) {
    const ChunkRun run = chunk_run(region, chunk);
    if (run.fault != nullptr)
      return Status::sentence(EILSEQ, std::string("the persistent region is damaged: ") + run.fault +
                                          " (chunk " + std::to_string(chunk) +
                                          "); nothing was changed. Restore the file from a copy");
    chunk += run.chunks;
  }
  return {};
}

Objects::Objects(const RegionView& region, uint64_t bytes, Persistence& domain, Grower& grower)
    : region_(region),
      grower_(grower),
      writer_(domain.open_writer()),
      bytes_(bytes),
      heap_address_(region.header().base + region.header().heap_offset),
      heap_bytes_(bytes - region.header().heap_offset),
      classes_(kClasses) {
  const uint64_t count = (bytes_ - region_.header().heap_offset) / kChunkBytes;
  for (uint64_t chunk = 0; chunk < count;) {
    const ChunkRun run = chunk_run(region_, chunk);
    chunk += run.chunks;
    if (run.fault != nullptr || run.is_live) continue;  // nobody's, or an object's
    if (run.word.kind == ChunkKind::kObjects)
      classes_[run.word.size_class].unscanned.insert(chunk - 1);
    else  // what a log had, what is left of a large object, or nothing
      give_chunks_back(chunk - run.chunks, run.chunks);
  }
}

uint64_t Objects::address_of(uint64_t chunk) const {
  return region_.header().base + region_.header().heap_offset + chunk * kChunkBytes;
}
uint64_t Objects::chunk_of(uint64_t address) const {
  return (address - region_.header().base - region_.header().heap_offset) / kChunkBytes;
}
ChunkWord Objects::word(uint64_t chunk) const { return ChunkWord::of(region_.chunks()[chunk]); }

Objects::Place Objects::place_of(uint64_t address) const {
  const Header& header = region_.header();
  if (address < header.base + header.heap_offset || address >= header.base + bytes_) return {};
  const uint64_t chunk = chunk_of(address), begin = address_of(chunk);
  const ChunkWord now = word(chunk);
  if (now.kind == ChunkKind::kLarge && address == begin + kLargeOffset)
    return {chunk, 0, begin, now.chunks * kChunkBytes - kLargeOffset};
  if (now.kind != ChunkKind::kObjects || now.size_class >= kClasses) return {};
  const uint64_t first = begin + first_object_of(now.size_class), bytes = kObjectBytes[now.size_class];
  if (address < first || (address - first) % bytes != 0) return {};
  const uint64_t index = (address - first) / bytes;
  if (index >= objects_of(now.size_class)) return {};
  return {chunk, index, begin + index, bytes};
}

uint64_t Objects::size_of(uint64_t address) const {
  std::lock_guard lock(mutex_);
  const Place place = place_of(address);
  if (place.state == 0) return 0;
  const std::byte allocated = StateBytes(region_.header(), place.chunk).allocated(place.index);
  return *region_.at(place.state) == allocated ? place.bytes : 0;
}

Result<uint64_t> Objects::allocate(Slot& slot, uint64_t bytes, uint64_t stamp) {
  const unsigned size_class = class_for(bytes);
  uint64_t address = 0;
  Place place;
  {
    std::lock_guard lock(mutex_);
    auto taken = size_class < kClasses ? take_small(size_class) : take_large(bytes);
    if (!taken) return taken.status();
    address = *taken;
    place = place_of(address);
  }
  if (Status status = slot.before_own_store(place.state, 1, stamp); !status) {
    are_free({address});
    return status;
  }
  *region_.at(place.state) = StateBytes(region_.header(), place.chunk).allocated(place.index);
  slot.is_fresh(address, place.bytes);
  slot.allocated().push_back(address);
  return address;
}

Status Objects::free(Slot& slot, uint64_t address, uint64_t stamp) {
  Place place;
  std::byte free_state{};
  {
    std::lock_guard lock(mutex_);
    place = place_of(address);
    if (place.state == 0)
      return Status::sentence(EINVAL, "no object of the persistent region begins at this address");
    const StateBytes states(region_.header(), place.chunk);
    free_state = states.free(place.index);
    const std::byte state = *region_.at(place.state);
    if (!states.is_one(place.index, state)) return damaged_state(place.chunk, place.index);
    if (state == free_state)
      return Status::sentence(EINVAL, "this object of the persistent region is free already");
    const ChunkWord now = word(place.chunk);
    if (now.kind == ChunkKind::kObjects && classes_[now.size_class].unscanned.contains(place.chunk))
      if (Status status = scan(now.size_class, place.chunk); !status) return status;
  }
  if (Status status = slot.before_own_store(place.state, 1, stamp); !status) return status;
  *region_.at(place.state) = free_state;
  slot.freed().push_back(address);
  return {};
}

void Objects::are_free(const std::vector<uint64_t>& addresses) {
  std::lock_guard lock(mutex_);
  for (const uint64_t address : addresses) {
    const Place place = place_of(address);
    if (place.state == 0) continue;
    const ChunkWord now = word(place.chunk);
    if (now.kind == ChunkKind::kObjects) {
      classes_[now.size_class].free.push_back(address);
    } else {
      // A crash before this is durable leaves a large object whose byte says that it is free.
      const uint64_t chunks = now.chunks;
      if (!write_words(place.chunk, chunks, ChunkKind::kFree, 0)) continue;
      give_chunks_back(place.chunk, chunks);
    }
  }
}

Result<uint64_t> Objects::take_small(unsigned size_class) {
  Class& of = classes_[size_class];
  while (of.free.empty() && !of.unscanned.empty()) {
    if (Status status = scan(size_class, *of.unscanned.begin()); !status) return status;
  }
  if (of.free.empty()) {
    auto chunk = take_chunks(1);
    if (!chunk) return chunk.status();
    if (Status status = write_states(*chunk, objects_of(size_class)); !status) return status;
    if (Status status = write_words(*chunk, 1, ChunkKind::kObjects, static_cast<uint8_t>(size_class));
        !status)
      return status;
    if (Status status = scan(size_class, *chunk); !status) return status;
  }
  const uint64_t address = of.free.back();
  of.free.pop_back();
  return address;
}

// The lowest address is handed out first, so that what is allocated together lies together. A chunk with a state that
// is neither stays as it is: unscanned.
Status Objects::scan(unsigned size_class, uint64_t chunk) {
  const StateBytes states(region_.header(), chunk);
  const std::byte* const bytes = region_.chunk_at(chunk);
  const uint64_t count = objects_of(size_class), first = address_of(chunk) + first_object_of(size_class);
  for (uint64_t i = 0; i < count; ++i)
    if (!states.is_one(i, bytes[i])) return damaged_state(chunk, i);
  for (uint64_t i = count; i-- > 0;)
    if (bytes[i] == states.free(i)) classes_[size_class].free.push_back(first + i * kObjectBytes[size_class]);
  classes_[size_class].unscanned.erase(chunk);
  return {};
}

Result<uint64_t> Objects::take_large(uint64_t bytes) {
  if (bytes > region_.header().capacity_bytes)
    return Status::sentence(ENOSPC, "the persistent region's capacity is less than " + format_size(bytes));
  const uint64_t chunks = (bytes + kLargeOffset + kChunkBytes - 1) / kChunkBytes;
  auto first = take_chunks(chunks);
  if (!first) return first.status();
  if (Status status = write_states(*first, 1); !status) return status;
  if (Status status = write_words(*first, chunks, ChunkKind::kLarge, 0); !status) return status;
  return address_of(*first) + kLargeOffset;
}

Result<Segment> Objects::take_segment(uint64_t bytes_min) {
  std::lock_guard lock(mutex_);
  const uint64_t chunks = (bytes_min + kChunkBytes - 1) / kChunkBytes;
  auto first = take_chunks(chunks);
  if (!first) return first.status();
  if (Status status = write_words(*first, chunks, ChunkKind::kLog, 0); !status) return status;
  return Segment{region_.at(address_of(*first)), chunks * kChunkBytes};
}

Result<uint64_t> Objects::take_chunks(uint64_t count) {
  const auto fits = [count](const auto& run) { return run.second >= count; };
  auto run = std::find_if(free_runs_.begin(), free_runs_.end(), fits);
  if (run == free_runs_.end()) {
    if (Status status = grow(count); !status) return status;
    run = std::find_if(free_runs_.begin(), free_runs_.end(), fits);
  }
  const auto [first, length] = *run;
  free_runs_.erase(run);
  if (length > count) free_runs_.emplace(first + count, length - count);
  return first;
}

Status Objects::grow(uint64_t chunks) {
  const Header& header = region_.header();
  const uint64_t most =
      round_down(header.capacity_bytes - header.heap_offset, kChunkBytes) + header.heap_offset;
  const uint64_t wanted = bytes_ + chunks * kChunkBytes;
  if (wanted > most)
    return Status::sentence(ENOSPC, "the persistent region is full: its capacity of " +
                                        format_size(header.capacity_bytes) +
                                        " was chosen when it was created");
  const uint64_t step = round_up(std::max(kGrowBytesMin, bytes_ / kGrowShare), kChunkBytes);
  uint64_t to = std::min(most, std::max(wanted, bytes_ + step));
  const uint64_t first = (bytes_ - header.heap_offset) / kChunkBytes;
  if (Status status = write_words(first, (to - bytes_) / kChunkBytes, ChunkKind::kFree, 0); !status)
    return status;
  Status status = grower_.grow_to(to);
  if (!status && to > wanted) status = grower_.grow_to(to = wanted);
  if (!status) return status;
  const uint64_t count = (to - bytes_) / kChunkBytes;
  bytes_ = to;
  heap_bytes_.store_relaxed(to - header.heap_offset);
  give_chunks_back(first, count);
  return {};
}

void Objects::give_chunks_back(uint64_t first, uint64_t count) {
  auto next = free_runs_.lower_bound(first);
  if (next != free_runs_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == first) {
      first = before->first;
      count += before->second;
      free_runs_.erase(before);
    }
  }
  if (next != free_runs_.end() && first + count == next->first) {
    count += next->second;
    free_runs_.erase(next);
  }
  free_runs_.emplace(first, count);
}

// The first word last: until it is there, nothing refers to the others. When they are given back it goes first.
Status Objects::write_words(uint64_t chunk, uint64_t count, ChunkKind kind, uint8_t size_class) {
  const auto put = [this](uint64_t at, ChunkWord value) {
    const uint64_t word = value.word(chunk_place(region_.header(), at));
    std::atomic_ref(region_.chunks()[at]).store(word, std::memory_order_relaxed);
    writer_->write_back(&region_.chunks()[at], sizeof(uint64_t));
  };
  const ChunkWord head{kind, size_class, kind == ChunkKind::kFree ? 0 : static_cast<uint32_t>(count)};
  const ChunkKind others = kind == ChunkKind::kFree ? ChunkKind::kFree : ChunkKind::kRest;
  if (kind == ChunkKind::kFree) {
    put(chunk, head);
    if (Status status = writer_->fence(); !status) return status;
  }
  for (uint64_t i = 1; i < count; ++i) put(chunk + i, {others, 0, 0});
  if (kind == ChunkKind::kFree) return writer_->fence();
  if (count > 1)
    if (Status status = writer_->fence(); !status) return status;
  put(chunk, head);
  return writer_->fence();
}

// All of them free.
Status Objects::write_states(uint64_t chunk, uint64_t objects) {
  const StateBytes states(region_.header(), chunk);
  std::byte* const bytes = region_.chunk_at(chunk);
  for (uint64_t i = 0; i < objects; ++i) bytes[i] = states.free(i);
  writer_->write_back(bytes, objects);
  return writer_->fence();
}

}  // namespace spw::durable
