// A partition: the owner's side of a share of the blocks and frames. All metadata work that a hit does not do happens
// here: lookups that must be exact, taking frames, eviction, read-ahead, write-behind, discard and flush.
//
// Where frames come from, in this order: dropped frames, frames never used, the reserve. The *reserve* is a queue of
// clean eviction candidates, still cached and still hit by clients; it is refilled from the policy before it is empty. A
// candidate that is dirty is written behind first, together with its dirty neighbours (writeback.cc), and enters the
// reserve when the write is done. So a miss nearly always finds a clean victim at once.
//
//     policy --clean--> reserve --not used meanwhile--> evicted
//            --dirty--> being written --still clean, unpinned--> reserve          (both: `on offer` to the policy)
//
// Invariants: free + never used + in the table = frames of the partition
//             in_writing_ = frames on offer and being written
//             reserve + in_writing_ <= reserve_high after a refill
//             ahead_unused_ >= frames with the ahead bit (a client clears the bit first, then counts)
// Threads: everything but ahead_used() and the counts at the end is the owner's, one thread at a time; who that is
//   delegation/ decides. BlockSource and FrameSource are called from here.
// Lifetime: destroyed when no transfer is in flight (drain()).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cache/block_table/block_table.h"
#include "cache/cache.h"
#include "cache/eviction/policy.h"
#include "cache/frame_pool/frame_source.h"
#include "cache/partition/fill_errors.h"
#include "cache/partition/partition_io.h"
#include "cache/partition/progress.h"
#include "cache/partition/request.h"
#include "cache/partition/reserve.h"
#include "cache/partition/store_set.h"
#include "cache/partition/touch_ring.h"

namespace spw::cache {

// A reserve holds at most this share of a partition's frames, read-ahead blocks not yet used this one.
inline constexpr uint32_t kReserveShare = 8;
inline constexpr uint32_t kAheadShare = 8;
// Of a partition's frames, parked at most.
inline constexpr uint32_t kParkedShare = 64;
// Room for candidates that left the reserve by another way and are still queued.
inline constexpr uint32_t kReserveSlack = 4;

// What all partitions of a cache share.
struct Commons {
  Options options;
  BlockTable& table;
  FrameSource& frames;
  BlockSource& blocks;
  FillErrors& errors;
  StoreSet& written_stores;
  FrameSource::Placement placement;
  bool owner_fills =
      false;  // demand fills go through the owner's queue (dedicated) or are the client's (combining)

  uint64_t block_bytes() const { return uint64_t{1} << options.block_shift; }
  std::byte* data(Resident resident) const {
    uint64_t index = placement.by_block ? resident.block.value : resident.frame.value;
    return placement.base + (index << options.block_shift);
  }
};

class Partition final : private FrameProbe {
 public:
  Partition(PartitionId id, Commons& commons, std::unique_ptr<Policy> policy);
  ~Partition() override = default;

  // Does what the request wishes and writes the answer, not yet `state`. False: the answer comes later, out of
  // answered_late().
  bool serve(Request& request);
  // Finishes what the queues have completed; false if nothing has.
  bool reap();
  // Requests answered since by reap(); the caller takes them all.
  std::vector<Request*>& answered_late() { return answered_late_; }
  bool io_busy() const { return io_.busy(); }
  PartitionIo& io() { return io_; }
  // Waits for everything in flight. For the end of the cache.
  void drain();

  // Any thread.
  PartitionId id() const { return id_; }
  bool wants_touches() const { return wants_touches_; }
  TouchRings& touches() { return touches_; }
  Progress& progress() { return progress_; }
  void ahead_used() { ahead_unused_.fetch_sub_relaxed(1); }
  // Frames that a miss may take without an eviction.
  uint32_t free_frames() const {
    const uint32_t used = used_frames(), limit = limit_.load_relaxed();
    return used < limit ? limit - used : 0;
  }
  uint32_t used_frames() const { return frame_count_ - free_count_.load_relaxed(); }
  uint32_t peak_frames() const { return peak_.load_relaxed(); }
  // Frames that may be in use; the owner keeps to it from its next miss on.
  uint32_t limit() const { return limit_.load_relaxed(); }
  void set_limit(uint32_t frames) { limit_.store_relaxed(frames); }
  uint64_t metadata_bytes() const;
  void check_invariants();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Local frame indices from here on.
  FrameId global(uint32_t frame) const { return FrameId(first_frame_ + frame); }
  uint32_t local(FrameId frame) const { return frame.value - first_frame_; }
  AtomicPinWord& word(uint32_t frame) { return commons_.table.word(global(frame)); }
  Verdict probe(uint32_t frame) override;

  // partition.cc: pins, frames, eviction
  bool serve_pin(Request& request);
  void serve_trim(Request& request);
  bool pin_present(Request& request, FrameId frame);
  bool start_owner_fill(Request& request);
  void drop_failed(FrameId frame);
  uint32_t take_frame();
  uint32_t evict_one();
  uint32_t evict_some(uint32_t wanted);
  void release_victims();
  void refill_reserve();
  void learn_touches();
  void insert(uint32_t frame, BlockId block, uint64_t refs, bool ahead);
  void tell_of_fill(BlockId block, Access access);
  void remove(uint32_t frame, PinWord was);
  void describe_wait(Request& request);
  void serve_close_store(Request& request);

  // in_place.cc
  struct BlockRun {
    uint64_t begin;
    uint64_t end;
  };
  BlockRun plan_zero_run(BlockId demanded) const;
  uint64_t install_dirty(BlockRun run, Contents contents, std::optional<BlockId> demanded);
  bool serve_zero_run(Request& request);
  void serve_zeros_ahead(Request& request);
  void serve_adopt(Request& request);
  bool has_plenty() const;
  bool is_zero_and_new(BlockId block) const;

  // readahead.cc
  void serve_prefetch(Request& request);
  bool may_read_ahead() const;
  bool take_run_staging(IoOp& op);
  void give_run_staging_back(IoOp& op);
  void install_run(IoOp& op);
  void finish_fill(IoOp& op, int error);

  // parking.cc
  struct Parked {
    Resident resident;
    std::byte* contents;
  };
  bool park(Resident resident, const std::byte* contents);
  void unpark(FrameId frame);

  // writeback/writeback.cc
  struct Run;
  enum class Started : uint8_t { kYes, kNo, kNoOperation };
  Started start_writeback(uint32_t frame, bool pinned_too);
  bool extend_run(Run& run, bool forward);
  void leave_homeless(uint32_t frame, BlockId block);
  void issue_run(IoOp& op, const Run& run);
  void submit_writebacks();
  void finish_writeback(IoOp& op, int error);
  void settle_written(uint32_t frame);
  void leave_zeros_out(Run& run);
  bool may_write_now() const;
  void note_write_error(const IoOp& op, int error);

  // ranges.cc
  void serve_discard(Request& request);
  void serve_flush(Request& request);
  bool discard_frame(uint32_t frame, PinWord seen);
  template <class Visit>
  bool visit_range(Request& request, Visit visit);

  Commons& commons_;
  const PartitionId id_;
  const uint32_t first_frame_;
  const uint32_t frame_count_;
  const uint32_t reserve_high_;
  const uint32_t run_blocks_max_;
  const uint32_t ahead_max_;
  const uint32_t evict_batch_;
  const uint32_t parked_max_;
  std::unique_ptr<Policy> policy_;
  const bool wants_touches_;
  TouchRings touches_;
  std::vector<uint32_t> free_;     // dropped frames
  uint32_t fresh_ = 0;             // frames from here on were never used
  std::vector<uint8_t> on_offer_;  // one a frame
  std::vector<Resident> victims_;  // out of the table, their memory not released yet; empty between requests
  Reserve reserve_;
  uint32_t in_writing_ = 0;
  std::vector<Parked> parked_;
  PartitionIo io_;
  store::Store* noted_store_ = nullptr;  // the last one put into written_stores
  std::vector<Request*> answered_late_;

  // The last failed write, while writes fail; new ones wait until retry_at_ns_.
  Status write_error_;
  uint64_t retry_at_ns_ = 0;
  uint64_t backoff_ns_ = 0;
  uint64_t failed_write_sequence_ = 0;

  Progress progress_;
  Atomic<uint32_t> ahead_unused_;
  Atomic<uint32_t> limit_;
  Atomic<uint32_t> free_count_;
  Atomic<uint32_t> peak_;
};

}  // namespace spw::cache
