// What a client asks of a partition's owner, and the owner's answer: one request a client, two halves.
//
// Threads: the client writes the wish and then gives the request to delegation/ (release); the owner reads it
// (acquire), writes the answer and sets `state` to kAnswered (release), which the client reads (acquire). From then on
// the request is the client's again.
#pragma once

#include <cstdint>
#include <optional>

#include "base/atomic.h"
#include "base/ids.h"
#include "base/status.h"
#include "cache/cache.h"
#include "store/store.h"

namespace spw::cache {

enum class Wish : uint8_t {
  kPin,         // block, access
  kDropFailed,  // frame: its fill failed and its last reference is gone
  kReap,        // finish what the queues have completed
  kClaim,  // [block, block + count): frames for those that are not there, into `run`; cursor: of how many, from the
           // first on. Each is being filled then, by the client, who has a reference
  kUnpark,  // frame, which may not be parked any more
  kPrefetch,  // block, stride, count: blocks of this partition; access: of what they come along with; marker; cursor: how
              // many of them could be asked for
  kZerosAhead,   // block: it and those behind it, where nothing was ever written
  kAdopt,        // [block, block + count), from cursor: are at their addresses already
  kDiscard,      // [block, block + count), from cursor
  kFlush,        // the same
  kBeginFlush,   // the same, but its transfers need not have finished
  kAwaitWrites,  // the same range: what is being written of it has been
  kTakeOut,      // the same range, of one group: kBlocked if anything is left in the table
  kCloseStore,   // store
  kTrim,         // count: evict until no more frames than that are in use
  kCheck,        // SPW_CHECKs the partition's invariants
};

enum class Answer : uint8_t {
  kDone,
  kPinned,   // frame has a reference for the client
  kFill,     // so it has, and the client must fill it
  kReady,    // so it has, and the owner has filled it with zeros
  kFilled,   // so it has, and the owner filled it for the client, or failed to
  kJoined,   // so it has, and someone else fills it
  kFailed,   // its fill failed a moment ago: see FillErrors
  kNoFrame,  // none can be had before something finishes; `status` says what went wrong last, if anything
  kMore,     // kAdopt, kDiscard, kFlush, kAwaitWrites, kTrim: a step is done; ask again
  kBlocked,  // the same, but not before something has finished
};

inline constexpr uint32_t kPosted = 0, kAsleep = 1, kAnswered = 2;

class Partition;

struct alignas(64) Request {
  // The wish.
  Request* next = nullptr;         // delegation's
  Partition* partition = nullptr;  // delegation's
  BlockId block;
  uint64_t count = 0;
  int64_t stride = 1;
  uint64_t cursor = 0;
  store::Store* store = nullptr;
  FrameId frame = kNoFrame;
  FrameId* run = nullptr;     // kClaim
  BlockId marker = kNoBlock;  // kPrefetch: to be parked
  Wish wish = Wish::kPin;
  Access access = Access::kRead;
  bool uses_seen = true;          // kPrefetch
  bool is_unit = false;           // kPrefetch: comes along with a block that is wanted; no window of a stream
  uint64_t patient_until_ns = 0;  // kDiscard: pins are waited for until then

  // The answer (frame and cursor too).
  alignas(64) Atomic<uint32_t> state;
  Answer answer = Answer::kDone;
  bool was_ahead = false;  // kPinned: the first use of a block read ahead
  bool was_clean = false;  // kPinned for write: the block became dirty
  bool more_than_one_queue = false;
  bool has_progressed = false;      // nothing to wait for
  uint32_t progress = 0;            // snapshot, for kNoFrame, kBlocked and kReap
  store::IoQueue* queue = nullptr;  // to wait in, if any
  uint64_t sequence = 0;           // kFlush: failures of transfers from here on are its own; 0: not known yet
  uint64_t flush_end = 0;          // kFlush: transfers below it have to finish; 0: not all are started
  std::optional<Backing> backing;  // kFill: where its contents are, if the owner had to look
  Status status;
};

// Posted requests are linked last first; owners serve first come, first served. Returns the first posted.
inline Request* in_posting_order(Request* last_posted) {
  Request* in_order = nullptr;
  while (last_posted) {
    Request* before = last_posted->next;
    last_posted->next = in_order;
    in_order = last_posted;
    last_posted = before;
  }
  return in_order;
}

}  // namespace spw::cache
