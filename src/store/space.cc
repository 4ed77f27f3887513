#include "store/space.h"

#include <algorithm>

#include "base/units.h"
#include "platform/time.h"

namespace spw::store {

namespace {
constexpr uint64_t kChunksPerWord = 64;
// Where no whole chunk finds room, the next try is this far off: some filesystems allocate all there is before they
// refuse, milliseconds for every block that is written.
constexpr uint64_t kNoChunkPauseNs = 1'000'000'000;
}  // namespace

SpaceReservations::SpaceReservations(const platform::File& file, uint64_t size_bytes)
    : file_(file), size_bytes_(size_bytes) {
  uint64_t chunks = size_bytes / kReserveChunkBytes + 1;
  bits_ = std::make_unique<Atomic<uint64_t>[]>(chunks / kChunksPerWord + 1);
}

bool SpaceReservations::is_reserved(uint64_t chunk) const {
  // Pairs with the release half of fetch_or in reserve_slowly: the allocation precedes the bit.
  return bits_[chunk / kChunksPerWord].load_acquire() >> (chunk % kChunksPerWord) & 1;
}

Status SpaceReservations::reserve(uint64_t offset_bytes, uint64_t bytes) {
  uint64_t end = std::min(offset_bytes + bytes, size_bytes_);
  while (offset_bytes < end) {
    uint64_t chunk = offset_bytes / kReserveChunkBytes;
    uint64_t chunk_end = (chunk + 1) * kReserveChunkBytes;
    if (!is_reserved(chunk) && !unsupported_.load_relaxed())
      if (Status status = reserve_slowly(chunk, offset_bytes, std::min(chunk_end, end)); !status)
        return status;
    offset_bytes = chunk_end;
  }
  return Status::ok();
}

Status SpaceReservations::reserve_slowly(uint64_t chunk, uint64_t offset_bytes, uint64_t end_bytes) {
  std::lock_guard lock(mutex_);
  if (is_reserved(chunk)) return Status::ok();
  if (platform::monotonic_ns() < no_chunk_until_ns_)
    return platform::allocate_space(file_, offset_bytes, end_bytes - offset_bytes);
  uint64_t chunk_start = chunk * kReserveChunkBytes;
  uint64_t chunk_end = std::min(chunk_start + kReserveChunkBytes, size_bytes_);
  Status status = platform::allocate_space(file_, chunk_start, chunk_end - chunk_start);
  if (status) {
    bits_[chunk / kChunksPerWord].fetch_or_acq_rel(uint64_t{1} << chunk % kChunksPerWord);
    return status;
  }
  // On a disk that is nearly full, a part of a chunk may still find room.
  if (status.error() == ENOSPC || status.error() == EDQUOT) {
    no_chunk_until_ns_ = platform::monotonic_ns() + kNoChunkPauseNs;
    return platform::allocate_space(file_, offset_bytes, end_bytes - offset_bytes);
  }
  if (status.error() != EOPNOTSUPP && status.error() != ENODEV) return status;
  unsupported_.store_relaxed(true);
  return Status::ok();
}

void SpaceReservations::forget(uint64_t offset_bytes, uint64_t bytes) {
  if (bytes == 0) return;
  std::lock_guard lock(mutex_);
  uint64_t last = std::min(offset_bytes + bytes, size_bytes_) - 1;
  for (uint64_t chunk = offset_bytes / kReserveChunkBytes; chunk <= last / kReserveChunkBytes; ++chunk)
    bits_[chunk / kChunksPerWord].fetch_and_acq_rel(~(uint64_t{1} << chunk % kChunksPerWord));
}

}  // namespace spw::store
