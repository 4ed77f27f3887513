// Fills that one thread has in flight: blocks that misses asked for, read in queues of
// the thread's own, one for each store. So the reads of many misses go to the kernel
// by one call, and whoever began them ends them: no owner has to look for them.
//
// Life of a fill: take -> begin (its frame is `filling`, with the thread's reference) -> kick -> reap -> put_back. The
// thread is F of block_table/pin_word.h for each of them.
//
// Invariants: fills taken <= most(), and room() = most() - fills taken
//             a queue has a fill in flight => a block of its store is `filling`, so the store is not closed meanwhile
// Threads: one, but for close_store(), which any may call.
// Lifetime: its cache's. Queues are opened at the first fills from a
// store and closed by close_store() or with the cache.
// Limits: kFillsMax fills; of kStagingBytesMax together, and a share of the frames, but for kFillsMin. Their memory
//   comes from outside of the frames: it is counted in what the cache tells as metadata.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/atomic.h"
#include "cache/cache.h"
#include "cache/frame_pool/frame_source.h"
#include "store/store.h"

namespace spw::cache {

class Fills {
 public:
  static constexpr size_t kFillsMax = 64;
  static constexpr size_t kFillsMin = 2;
  static constexpr uint64_t kStagingBytesMax = 1 << 20;
  static constexpr uint32_t kFramesShare = 8;  // a frame that is being filled cannot be evicted

  struct Fill {
    store::Request request;
    store::Store* store = nullptr;
    Resident resident{kNoFrame, BlockId()};
    Access access = Access::kRead;
    std::byte* staging = nullptr;  // where the frame source needs it; kept
    bool is_staged = false;        // this time
    uint64_t asked_ns = 0;
    uint64_t tag = 0;  // whose it is
    int error = 0;     // once it is reaped
  };

  // `bytes`: to be kept at the memory that all of them have.
  Fills(FrameSource& frames, uint64_t block_bytes, uint32_t frame_count, Atomic<uint64_t>& bytes);
  ~Fills();

  size_t most() const { return most_; }
  size_t room() const { return idle_.size(); }
  size_t in_flight() const { return most_ - idle_.size(); }

  // Whether a read of the store is likely to begin, asked before a frame is taken for it. No: who may wait reads it.
  // Only compares the address, since the store may be closed meanwhile.
  bool may_begin(const store::Store* store);
  // There is room, and the block is `filling`. False: nothing was begun (there is no queue yet, or no staging).
  bool begin(Resident resident, const Backing& backing, Access access, uint64_t asked_ns, uint64_t tag);
  void kick();
  // Those that are done, without waiting; each is given back with put_back().
  size_t reap(std::span<Fill*> out);
  void put_back(Fill* fill) { idle_.push_back(fill); }
  // How to sleep until some are done: appends to `fds`, of which
  // there are no more than most(), and returns for how long at most.
  uint64_t sleep(std::vector<int>* fds);

  void close_store(store::Store& store);

 private:
  struct Queue {
    store::Store* store = nullptr;
    std::unique_ptr<store::IoQueue> queue;  // nullptr: not yet, or it cannot be
    size_t in_flight = 0;
    unsigned left_to_others = 0;  // so many misses more, before it is tried again
    bool kick_is_due = false;
    bool cannot_be = false;  // its kind does not tell how to sleep
  };
  // Of a short-lived store (as PartitionIo), and where descriptors or memory are short for the moment.
  static constexpr unsigned kMissesBeforeQueue = 4;
  static constexpr unsigned kMissesBeforeRetry = 64;

  Queue* queue_of(store::Store& store);
  bool give_staging(Fill& fill);

  FrameSource& frames_;
  const uint64_t block_bytes_;
  const size_t most_;
  Atomic<uint64_t>& bytes_;
  std::array<std::unique_ptr<Fill>, kFillsMax> fills_;
  std::vector<Fill*> idle_;
  std::mutex mutex_;  // of the queues
  std::vector<Queue> queues_;
};

}  // namespace spw::cache
