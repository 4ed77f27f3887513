// Write-behind of one partition: a dirty frame is written together with
// the dirty neighbours of its group, as one request in address order.
//
// Invariant: only a frame that is dirty begins to be written, and it
// keeps its block until finish() (see organisation.h).
// Threads: the owner's. After a write failed, new ones wait for a while that doubles with each failure.
#pragma once

#include "cache/partition/context.h"
#include "cache/partition/partition_io.h"

namespace spw::cache {

class Organisation;
struct EvictionBatch;

class Writeback {
 public:
  Writeback(PartitionContext& context, PartitionIo& io);
  ~Writeback();

  enum class Started : uint8_t { kYes, kNo, kNoOperation };
  // Starts the writeback of a dirty frame and of what can go with it. kNo: it is not dirty, is pinned (unless
  // pinned_too), is being written already, or its range was freed. On its way after submit(). `told`: of each frame;
  // `batch`: what it is for, if for an eviction.
  Started start(Organisation& told, FrameId frame, bool pinned_too, EvictionBatch* batch = nullptr);
  void submit();
  // A lifted block is in place again, and whoever waits for it goes on.
  void put_back(FrameId frame);
  // The operation, of kind kWriteback, has come back.
  void finish(Organisation& told, IoOp& op, int error);

  // Whether a write may begin: false for a while after one has failed.
  bool may_write_now() const;
  // How the latest write ended: ok, or, while writes fail, how the last of them did.
  const Status& last_write() const { return last_write_; }
  // Why the latest of the operations from `sequence` on that failed did so; ok: none has.
  Status failure_since(uint64_t sequence) const {
    return failed_sequence_ >= sequence ? failure_ : Status::ok();
  }
  // `store` is about to go.
  void forget_store() { noted_store_ = nullptr; }

 private:
  struct Run;
  struct Waiting;  // to be lifted
  bool may_lift(const IoOp& op, const Run& run) const;
  bool may_lift(Resident resident) const;
  void protect(const Run& run) const;
  void send(IoOp& op, Run& run);
  void reserve_for_lifting();
  void wait_to_be_lifted(IoOp& op, const Run& run);
  void lift_waiting();
  void lift(std::span<const Resident> blocks) const;
  void end_lifted(const IoOp& op, uint32_t i, int error);
  bool extend_run(Run& run, bool forward);
  void clean_freed(FrameId frame, BlockId block);
  void issue_run(IoOp& op, const Run& run);
  void leave_zeros_out(Run& run);
  void leave_unstored_out(Run& run);
  void settle_unwritten(const Run& run, uint32_t place);
  void leave_dirty(const Run& run, uint32_t place);
  uint32_t take_staging(IoOp& op, BlockId block, bool is_readable) const;
  void give_staging_back(IoOp& op) const;
  void copy_run(IoOp& op, Run& run) const;
  std::byte* contents(const Run& run, uint32_t place) const;
  void note_write_error(const IoOp& op, int error);
  AtomicPinWord& word(FrameId frame) const { return context_.directory.word(frame); }

  PartitionContext& context_;
  PartitionIo& io_;
  const uint32_t run_blocks_max_;
  // Until submit(), or there are so many; no memory is asked for then, since this may be in a page fault.
  std::vector<Waiting> waiting_;
  std::vector<Resident> lifted_;         // empty between requests
  store::Store* noted_store_ = nullptr;  // the last one put into written_stores
  Status last_write_;
  uint64_t retry_at_ns_ = 0;  // while writes fail: none begins before
  uint64_t backoff_ns_ = 0;
  uint64_t failed_sequence_ = 0;  // 0: none ever
  Status failure_;
};

}  // namespace spw::cache
