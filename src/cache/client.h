// A thread's door to the cache: its request to owners, and its streams.
//
// Threads: one at a time. Lifetime: from open_client to close_client; the memory stays until the cache's end, since an
// owner may still wake through it.
#pragma once

#include <memory>

#include "cache/partition/request.h"
#include "cache/partition/stream_detector.h"
#include "cache/partition/touch_ring.h"

namespace spw::cache {

class Client {
 public:
  explicit Client(uint32_t readahead_blocks_max) : streams(readahead_blocks_max) {}

  Request request;
  StreamDetector streams;
  std::unique_ptr<TouchRing[]> touches;  // one a partition, if the policy wants touches
  std::byte* staging = nullptr;  // for its fills, if the frame source needs it; kept when it is closed
  Uses uses = Uses::kSeen;
  bool may_wait = true;       // for owners; else what they would do is left undone
  bool takes_loose = false;   // what it has to read by itself need not come to its own address
  bool takes_errors = false;  // the error handler need not be told
  bool open = false;
};

}  // namespace spw::cache
