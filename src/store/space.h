// The space a file store has reserved: one bit for each chunk of kReserveChunkBytes that is allocated on the
// filesystem, so that a write into it cannot fail with ENOSPC.
//
// Invariant: bit set => every byte of the chunk inside the file's size is allocated, but for ranges that are being
//   discarded right now.
// Threads: any. The bit is set under mutex_ after the allocation, and cleared under mutex_ after the hole is punched;
//   an allocation of a whole chunk therefore never hides a hole punched meanwhile. Reading a bit takes no lock.
// Limits: one bit for 16 MiB: 128 KiB for 16 TiB.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

#include "base/atomic.h"
#include "base/status.h"
#include "platform/file.h"

namespace spw::store {

inline constexpr uint64_t kReserveChunkBytes = uint64_t{16} << 20;

class SpaceReservations {
 public:
  SpaceReservations(const platform::File& file, uint64_t size_bytes);

  // Allocates what of [offset, offset + bytes) is not yet; ENOSPC if
  // there is no room. Nothing on a filesystem that cannot.
  Status reserve(uint64_t offset_bytes, uint64_t bytes);
  // [offset, offset + bytes) has been punched out.
  void forget(uint64_t offset_bytes, uint64_t bytes);
  // As Store's.
  void in_child() { new (&mutex_) std::mutex; }

 private:
  bool is_reserved(uint64_t chunk) const;
  Status reserve_slowly(uint64_t chunk, uint64_t offset_bytes, uint64_t end_bytes);

  const platform::File& file_;
  const uint64_t size_bytes_;
  std::mutex mutex_;
  uint64_t no_chunk_until_ns_ = 0;  // under mutex_
  std::unique_ptr<Atomic<uint64_t>[]> bits_;
  Atomic<bool> unsupported_{false};
};

}  // namespace spw::store
