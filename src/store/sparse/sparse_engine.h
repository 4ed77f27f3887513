// The engine of a sparse store's queues: gives each step the descriptor of its segment and hands
// it to an engine for files. What needs no file is done at once (reads of segments that do not
// exist); what may concern many files (discards, syncs) is done by the store's worker threads.
// Creating a segment happens in issue(): a few system calls on metadata, once a segment.
//
// Invariant: a segment is in use from issue() until its step's result is harvested.
// Threads, lifetime: as every engine; segments and workers outlive it. Limits: as the inner engine.
#pragma once

#include <memory>
#include <vector>

#include "store/engine/thread_engine.h"
#include "store/sparse/segments.h"

namespace spw::store {

// Does one step in the calling thread.
int64_t run_sparse_io(Segments& segments, const RawIo& io);

class SparseEngine final : public IoEngine {
 public:
  // `workers` run run_sparse_io().
  SparseEngine(std::unique_ptr<IoEngine> files, Segments& segments, WorkerPool& workers, size_t depth);

  void issue(std::span<const RawIo> ios) override;
  void kick() override { files_->kick(); }
  size_t harvest(std::span<RawResult> out) override;
  void wait(uint64_t timeout_ns) override;
  void wake() override { files_->wake(); }

 private:
  struct Use {
    uint64_t segment = 0;
    bool written = false;
  };
  void issue_transfer(const RawIo& io);

  std::unique_ptr<IoEngine> files_;
  Segments& segments_;
  WorkerPool& workers_;
  Mailbox done_;                 // what did not go to files_
  std::vector<Use> uses_;        // by slot: steps at files_
  std::vector<RawIo> to_files_;  // of one issue()
  std::vector<RawIo> to_workers_;
  std::vector<RawResult> at_once_;
};

}  // namespace spw::store
