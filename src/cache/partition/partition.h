// A partition: the owner's side of a share of the blocks and frames. All metadata work that a hit does not do happens
// here: lookups that must be exact, taking frames, eviction, read-ahead, write-behind, discard and flush.
//
// Which frames hold what, and who has to leave, is the business of its organisation (organisation.h); what is common to
// all ways to organise a partition is here.
//
// Threads: everything but ahead_used() and the counts at the end is the owner's, one thread at a time; who that is
//   delegation/ decides. BlockSource and FrameSource are called from here.
// Lifetime: destroyed when no transfer is in flight (drain()).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cache/partition/organisation.h"
#include "cache/partition/partition_io.h"
#include "cache/partition/progress.h"
#include "cache/partition/request.h"
#include "cache/writeback/writeback.h"

namespace spw::cache {

// Blocks that were read ahead for streams and not used yet are at most
// this share of a partition's frames; what comes along with one miss, too.
inline constexpr uint32_t kAheadShare = 8;
// Whoever makes room holds the lock meanwhile, and to choose a block and prepare its write takes a microsecond.
inline constexpr uint32_t kTrimStartsMax = 16;
// Of a partition's frames, parked at most.
inline constexpr uint32_t kParkedShare = 64;

class Partition final {
 public:
  // `policy`: ranks its frames; nullptr: they are page sets.
  Partition(PartitionId id, PartitionContext& context, std::unique_ptr<Policy> policy);

  // Does what the request wishes and writes the answer, not yet `state`. False: the answer comes later, out of
  // answered_late().
  bool serve(Request& request);
  // Finishes what the queues have completed; false if nothing has.
  bool reap();
  // Requests answered since by reap(); the caller takes them all.
  std::vector<Request*>& answered_late() { return answered_late_; }
  bool io_busy() const { return io_.busy(); }
  PartitionIo& io() { return io_; }
  // Starts the transfers that serve() and reap() have left to be started, for an owner that stays it
  // (PartitionIo::collect for others).
  void kick();
  // Waits for everything in flight. For the end of the cache.
  void drain();

  // Any thread.
  PartitionId id() const { return id_; }
  Organisation& organisation() { return *organisation_; }
  const Organisation& organisation() const { return *organisation_; }
  Progress& progress() { return progress_; }
  uint64_t metadata_bytes() const;

 private:
  AtomicPinWord& word(FrameId frame) { return context_.directory.word(frame); }

  // partition.cc: pins, frames, eviction
  bool serve_pin(Request& request);
  void check_invariants();
  void serve_trim(Request& request);
  bool pin_present(Request& request, FrameId frame);
  bool start_owner_fill(Request& request);
  void drop_failed(FrameId frame);
  Organisation::Taken take(BlockId block, uint64_t refs, bool ahead);
  void evict(EvictionBatch& batch);
  void describe_wait(Request& request);
  void serve_close_store(Request& request);

  // in_place.cc
  struct BlockSpan {
    uint64_t begin;
    uint64_t end;
  };
  BlockSpan plan_zero_run(BlockId demanded) const;
  uint64_t install_dirty(BlockSpan run, Contents contents, std::optional<BlockId> demanded);
  void learn_zero_run(bool came_back, uint32_t most);
  void serve_claim(Request& request);
  bool serve_zero_run(Request& request);
  void serve_zeros_ahead(Request& request);
  void serve_adopt(Request& request);
  bool has_plenty() const;
  bool is_new(const Backing& backing) const { return backing.store != nullptr && !backing.has_contents; }
  bool is_zero_and_new(BlockId block) const;

  // readahead.cc
  void serve_prefetch(Request& request);
  void prefetch_block(BlockId block) const;
  bool may_read_ahead() const;
  Organisation::Taken take_ahead(BlockId block, uint64_t wanted);
  bool take_staging(IoOp& op, BlockId block, uint64_t blocks);
  void expect_stores(IoOp& run, const Request& request, BlockId block) const;
  void give_staging_back(IoOp& op);
  void install_run(IoOp& op);
  void prefetch(const IoOp& op) const;
  void finish_fill(IoOp& op, int error);

  // parking.cc
  struct Parked {
    Resident resident;
    std::byte* contents;
  };
  bool park(Resident resident, const std::byte* contents);
  void unpark(FrameId frame);

  // ranges.cc
  void serve_discard(Request& request);
  void serve_flush(Request& request);
  void serve_await_writes(Request& request);
  void serve_take_out(Request& request);
  bool discard_frame(FrameId frame, PinWord seen);
  template <class Visit>
  bool visit_range(Request& request, Visit visit);

  PartitionContext& context_;
  const PartitionId id_;
  PartitionIo io_;
  Writeback writeback_;
  const std::unique_ptr<Organisation> organisation_;
  const uint32_t run_blocks_max_;
  const uint32_t ahead_max_;
  const uint32_t parked_max_;
  uint32_t zero_run_max_ =
      UINT32_MAX;           // without plenty, beside what one eviction frees; at least kZeroRunMin
  uint32_t new_zeros_ = 0;  // demanded in a row that had not been there before
  std::vector<Parked> parked_;
  std::vector<Request*> answered_late_;
  Progress progress_;
};

}  // namespace spw::cache
