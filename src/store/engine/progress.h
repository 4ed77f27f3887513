// What is left of one request: the one place that checks requests, continues short transfers, retries transient errors,
// fills the space behind a file's end with zeros, and injects faults. transfer() and all engines drive it the same way:
//
//     progress.begin(request, target);
//     while (progress.next(&io)) progress.finish_step(<result of doing io>);
//     progress.error()
//
// Steps of a request: reads and writes go from offset to end, each step where the one before
// stopped. A write to a file whose size is not a multiple of the alignment is cut at the last
// aligned offset; its last bytes go through the buffered descriptor, because a direct write could
// not stop at the file's end. A discard that the filesystem cannot do becomes writes of zeros.
// Invariant: done_bytes_ is a multiple of the alignment unless the request is over or in the unaligned tail of a write.
// Threads: one at a time. Lifetime: the request and the target outlive it.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "platform/memory.h"
#include "platform/time.h"
#include "store/engine/engine.h"
#include "store/fault_plan.h"
#include "store/store.h"

namespace spw::store {

class SpaceReservations;

// Of a file that this process makes longer and shorter while it is in use.
struct Growth {
  Atomic<uint64_t> size_bytes{0};   // of the file as its users see it
  Atomic<uint64_t> written_end{0};  // nothing was ever written at or behind it
  // So many ask that writes go by the buffered descriptor: to the kernel's memory, which takes them on from there.
  Atomic<uint32_t> to_kernel{0};

  void set(uint64_t bytes) {
    size_bytes.store_release(bytes);
    if (written_end.load_relaxed() > bytes) written_end.store_release(bytes);
  }
  // The file itself has this size.
  void settle(uint64_t bytes) {
    size_bytes.store_release(bytes);
    written_end.store_release(bytes);
  }
};

// What a store's requests go to.
struct Target {
  Atomic<int> fd{-1};       // for transfers; maybe O_DIRECT
  Atomic<int> tail_fd{-1};  // for the unaligned end of a file; never O_DIRECT; may be fd
  uint64_t size_bytes = 0;
  uint64_t begin_bytes = 0;  // where its first byte lies in what the descriptors have open
  uint64_t alignment_bytes = 0;
  // No step of a read or write crosses a multiple of this (0: they may).
  uint64_t piece_bytes = 0;
  // Nobody else sees the contents and they die with the process: writes may make the file longer, its end reads as
  // zeros wherever that is, and a sync is nothing.
  bool spill = false;
  // Requests and their bytes are counted; not so where the stores that they go on to count them.
  bool counts_requests = true;
  FaultPlan* faults = nullptr;
  SpaceReservations* space = nullptr;  // told about discards
  // Its size holds instead of size_bytes; the file itself may end earlier, which reads as zeros up to there.
  Growth* growth = nullptr;

  uint64_t size() const { return growth != nullptr ? growth->size_bytes.load_acquire() : size_bytes; }
};

class Progress {
 public:
  // Starts with `request`, which it counts, and which is over at once when it is malformed.
  void begin(const Request& request, const Target& target);
  // The next step, if the request is not over. `io` refers to this object and the request until finish_step().
  bool next(RawIo* io);
  // The step's outcome: bytes moved, or a negative errno. `lasting`: an error that was retried already.
  void finish_step(int64_t result, bool lasting = false);
  void finish_step(const RawResult& result) { finish_step(result.result, result.lasting); }

  // 0, or a positive errno, once the request is over.
  int error() const { return error_; }
  // How long the request has to take at least (a fault).
  uint64_t delay_ns() const { return fault_.delay_ns; }

 private:
  int check() const;
  uint64_t write_end() const;
  void finish(int error);
  void finish_read_step(uint64_t bytes);
  void finish_write_step(uint64_t bytes);
  void finish_failed_step(int error);
  void continue_from(uint64_t done_bytes);
  void retry_or_fail(int error);
  uint64_t step_bytes() const;
  void shorten(uint64_t* bytes);
  void spoil(RawIo* io);
  void spoil_read(uint64_t bytes);
  void cut_segments(uint64_t bytes, RawIo* io);
  void point_to_zeros(uint64_t bytes, RawIo* io);
  void zero_behind(uint64_t done_bytes);

  const Request* request_ = nullptr;
  const Target* target_ = nullptr;
  uint64_t size_bytes_ = 0;  // of the target, when the request began
  uint64_t total_bytes_ = 0;
  uint64_t done_bytes_ = 0;
  Op op_ = Op::kRead;  // of the steps: a discard may turn into a write
  bool over_ = true;
  uint64_t planned_bytes_ = 0;  // of the step that next() gave out, before a fault made it shorter
  unsigned retries_ = 0;        // since the last progress
  int error_ = 0;
  Fault fault_;
  platform::Mapping spoiled_;  // what is written instead of the request's contents (a fault)
  iovec cut_[kSegmentsMax];    // a step that does not move all segments; written by next()
};

// Does the whole request in the calling thread, its steps with `run`
// (RawIo -> result or RawResult). 0, or a positive errno.
template <class Run>
int transfer_now(Progress& progress, const Request& request, const Target& target, Run run) {
  progress.begin(request, target);
  if (progress.delay_ns() > 0) platform::sleep_ns(progress.delay_ns());
  for (RawIo io; progress.next(&io);) progress.finish_step(run(io));
  return progress.error();
}

// "cannot read 4096 bytes at offset 8192 of file:/data (io_uring, O_DIRECT)".
Status transfer_failed(int error, const Request& request, const std::string& store);

}  // namespace spw::store
