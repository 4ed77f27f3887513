// A store in segments of equal size, each a file of its own that its first write makes:
// "sparse:DIR?segment=SIZE&size=SIZE". (UMap, IPDPS 2022 [paper 2], section 4.1, SparseStore.)
//
// What is sparse takes no more files and space than was written; writers of different segments do not meet in one
// file's locks. Reads of what was never written are zeros and touch no file. A discard of a whole segment removes its
// file, one of a part punches a hole. A sync reaches the segments that were written to and the directory. A transfer
// that crosses segments is done in steps, one segment at a time.
// With Access::kSpill the files have no names and are gone with the process; syncs are nothing then.
//
// Threads, lifetime: as every store. One process has a store open for writing, or several for reading.
// Limits: segment_directory.h and segments.h: kSegmentCountMax segments of a multiple
// of kSegmentGrainBytes, kOpenSegmentsMax of them when spilling; the filesystem's
// longest file for one segment. Segment files must not be touched by others meanwhile.
#pragma once

#include <memory>
#include <optional>

#include "store/engine/progress.h"
#include "store/engine/thread_engine.h"
#include "store/sparse/segments.h"
#include "store/store.h"

namespace spw::store {

struct SparseOptions {
  Access access = Access::kOpenOrCreate;
  Shape shape{};  // 0: as the store there is, or a default; for kSpill kSpillBytesMax
  IoEngineKind engine = IoEngineKind::kAuto;
  bool direct = true;           // O_DIRECT where the filesystem has it
  FaultPlan* faults = nullptr;  // outlives the store
};

class SparseStore final : public Store {
 public:
  // Errors: as SegmentDirectory::open.
  static Result<std::unique_ptr<SparseStore>> open(const std::string& directory,
                                                   const SparseOptions& options);

  std::string describe() const override;
  std::string describe_at(uint64_t offset_bytes) const override;
  uint64_t size_bytes() const override { return target_.size_bytes; }
  uint64_t alignment_bytes() const override { return target_.alignment_bytes; }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override;
  Status transfer(Request& request) override;
  Status reserve(uint64_t offset_bytes, uint64_t bytes) override;

  // How many segments have a file, and how many of these are open: no
  // more than kOpenSegmentsMax while nothing is in flight.
  uint64_t existing_segments() const { return segments_->existing(); }
  uint64_t open_segments() const { return segments_->open(); }
  const Shape& shape() const { return segments_->directory().shape(); }

 private:
  SparseStore();
  Status set_up(SegmentDirectory directory, const SparseOptions& options);

  std::unique_ptr<Segments> segments_;
  bool direct_ = false;
  IoEngineKind engine_ = IoEngineKind::kAuto;
  bool engine_chosen_here_ = false;  // it may be replaced by a lesser one when a queue cannot be made
  Target target_;
  WorkerPool file_workers_;
  WorkerPool sparse_workers_;
};

}  // namespace spw::store
