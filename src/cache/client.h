// A thread's door to the cache: its request to owners, and its streams.
//
// Threads: one at a time. Lifetime: from open_client to close_client; the memory stays until the cache's end, since an
// owner may still wake through it.
#pragma once

#include <memory>

#include "base/atomic.h"
#include "base/units.h"
#include "cache/cache.h"
#include "cache/partition/request.h"
#include "cache/partition/stream_detector.h"
#include "cache/partition/touch_ring.h"

namespace spw::cache {

class Client {
 public:
  // Of a stride, between two blocks that are needed: less than a request costs beside its transfer.
  static constexpr uint64_t kDenseBytes = 8 * kKiB;

  Client(uint32_t readahead_blocks_max, unsigned block_shift)
      : streams(readahead_blocks_max, 1 + static_cast<int64_t>(kDenseBytes >> block_shift)) {}

  Request request;
  StreamDetector streams;
  std::unique_ptr<TouchRing[]> touches;  // one a partition, if the policy wants touches
  std::byte* staging = nullptr;  // for its fills, if the frame source needs it; kept when it is closed
  Uses uses = Uses::kSeen;
  bool may_wait = true;      // for owners; else what they would do is left undone
  bool takes_loose = false;  // what it has to read by itself need not come to its own address
  // A store is likely to follow a load: what it misses of a shared file may come dirty, with a sum.
  bool expects_store = false;
  bool takes_errors = false;  // the error handler need not be told
  bool open = false;

  // With extents (cache/extents/): which ones it is in, for who claims one; the blocks that reading ahead for it may
  // come to, if any are given; and what it has to have done once it is out: what lies beyond them, and the end of a
  // long stream.
  struct Reach {
    BlockId first, end;
    bool is_given() const { return end.value != 0; }
  };
  Atomic<uint64_t> in_extents{0};
  Reach reach;
  BlockRun beyond;
  BlockId stream_end{0};
};

// A stream whose read-ahead asks for so much at a time is a long one.
inline constexpr uint64_t kLongStreamBytes = 256 * kKiB;

}  // namespace spw::cache
