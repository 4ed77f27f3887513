// The asynchronous transfers of one partition: a pool of operations, and a queue for each store they go to.
//
// An operation moves a run of neighbouring blocks, one request to the store. Life: take ->
// (filled in) -> start -> [submit] -> reap, which hands it back to the pool. What was submitted
// is under way when its queue was kicked, which takes microseconds and needs no owner: whoever
// has been the owner collects the kicks that are due, and does them when it is no longer.
//
// Invariant: idle + taken + started + in flight = operations made <= depth, so no queue is ever over-full.
// Threads: the owner's, except wait targets: queue_to_wait_on() may
// be waited on by another thread (store/store.h); and kick().
// Lifetime: queues are opened at the first operation on a store and closed by close_store() or with the partition, when
//   nothing is in flight.
// Limits: `depth` operations; a run is at most kGroupBlocks blocks and kRunBytesMax bytes.
#pragma once

#include <memory>
#include <vector>

#include "base/ids.h"
#include "cache/block_table/block_table.h"
#include "cache/frame_pool/frame_source.h"
#include "store/store.h"

namespace spw::cache {

static_assert(kGroupBlocks <= store::kSegmentsMax && kGroupBlocks <= 64);

struct Request;

// Queues that have to be kicked.
struct Kicks {
  static constexpr size_t kMax = 4;
  store::IoQueue* queues[kMax];
  size_t count = 0;
};

struct IoOp {
  enum class Kind : uint8_t { kAhead, kFill, kWriteback };
  store::Request request;
  store::Store* store = nullptr;
  uint64_t sequence = 0;  // of start(); grows
  Kind kind = Kind::kAhead;
  uint32_t count = 0;  // blocks
  BlockId first;
  FrameId frames[kGroupBlocks];
  Request* answer_when_done = nullptr;  // kFill: whose demand it is
  std::byte* staging = nullptr;         // where the frame source needs or wants it
  FrameSource::Staging staging_kind = FrameSource::Staging::kRun;
  bool uses_seen = true;           // kAhead: the first use of each block will be noticed
  bool follows_store = false;      // kAhead: comes along with a block that is stored to
  bool is_dirty = false;           // kAhead: and is to be stored to itself, most likely
  bool is_summed = false;          // kAhead: is_dirty, of a shared file (writeback/fill_sums.h)
  bool is_unit = false;            // kAhead: nobody waits for its first use to go on reading
  uint32_t marker = kGroupBlocks;  // kAhead: this block of them is to be parked
  uint64_t lifted = 0;             // kWriteback: these blocks of them were, a bit for each

  BlockId block(uint32_t i) const { return first + i; }
  // The memory of one.
  std::byte* data(uint32_t i, uint64_t block_bytes) const;
  // Appends the memory of one more block; memory that continues the last segment lengthens it.
  void append_segment(std::byte* data, uint64_t bytes);
};

class PartitionIo {
 public:
  explicit PartitionIo(size_t depth) : depth_(depth) {}
  ~PartitionIo();

  // An operation to fill in, all of its fields reset; nullptr when all are in use.
  IoOp* take();
  void put_back(IoOp* op) { idle_.push_back(op); }
  // The operation is complete: it will be issued by the next submit().
  void start(IoOp* op);
  void submit();
  // Those that are due; beyond Kicks::kMax they are done here. An owner that stays it puts them back.
  void collect(Kicks* kicks);
  void put_back(Kicks* kicks);
  // Any thread that has collected them and is the owner no longer, once, before it waits for anything.
  void kick(const Kicks& kicks);

  struct Done {
    IoOp* op = nullptr;
    int error = 0;
  };
  // Up to kReapMax finished operations, oldest first, into `out`; the caller gives each back with put_back.
  static constexpr size_t kReapMax = 32;
  size_t reap(Done (&out)[kReapMax]);

  bool busy() const { return in_flight_ + started_.size() + done_here_.size() > 0; }
  // The least sequence number not yet reaped, UINT64_MAX if there is none; what the next start() will give.
  uint64_t oldest_sequence() const;
  uint64_t next_sequence() const { return next_sequence_; }
  // A queue with operations in flight, another each time if there are several; nullptr: none.
  store::IoQueue* queue_to_wait_on();
  bool several_queues_busy() const;
  // What was done without a queue waits for the next reap().
  bool has_done_here() const { return !done_here_.empty(); }
  // Nothing is in flight to `store`: forgets its queue, when none is being kicked any more.
  void close_store(store::Store& store);
  bool store_busy(const store::Store& store) const;
  uint64_t metadata_bytes() const;

 private:
  struct Queue {
    explicit Queue(store::Store* opened_on) : store(opened_on) {}
    store::Store* store;
    std::unique_ptr<store::IoQueue> queue;  // nullptr: not yet
    size_t in_flight = 0;
    unsigned transfers = 0;  // that were done without one
    bool kick_is_due = false;
  };
  // Of a short-lived store, so many are done by transfer() before a queue is opened.
  static constexpr unsigned kTransfersBeforeQueue = 4;
  Queue* queue_of(store::Store* store);
  void transfer_now(IoOp* op);

  const size_t depth_;
  uint64_t next_sequence_ = 1;
  size_t in_flight_ = 0;
  size_t wait_turn_ = 0;
  std::vector<std::unique_ptr<IoOp>> ops_;
  std::vector<IoOp*> idle_;
  std::vector<IoOp*> started_;
  std::vector<Done> done_here_;  // without a queue
  std::vector<Queue> queues_;
  bool kicks_are_due_ = false;
  Atomic<uint32_t> kicking_;  // kicks that were collected and are not done
};

}  // namespace spw::cache
