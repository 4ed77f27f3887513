// Staging buffers: where the contents of blocks are read to before they are installed in their place. Those of runs lie
// in huge pages where the kernel has them.
//
// Invariant: run buffers in use, those that are cut into pieces included,
// <= runs_max. Threads: any. Lifetime: outlives every buffer it handed out.
// Limits: runs_max buffers for runs; buffers for single blocks as many as are asked for (one a thread).
#pragma once

#include <mutex>
#include <vector>

#include "base/status.h"
#include "cache/frame_pool/frame_source.h"
#include "platform/memory.h"

namespace spw::cache {

class StagingBuffers {
 public:
  using Kind = FrameSource::Staging;

  StagingBuffers(uint64_t block_bytes, uint64_t run_bytes, uint32_t runs_max)
      : bytes_{block_bytes, run_bytes}, left_{UINT32_MAX, runs_max}, cut_left_(runs_max / kCutShare) {}

  // nullptr: all are in use, or there is no memory.
  std::byte* take(Kind kind);
  void give_back(Kind kind, std::byte* buffer);
  uint64_t mapped_bytes() const;

 private:
  // So many of the run buffers are cut into pieces at most, and stay so.
  static constexpr uint32_t kCutShare = 4;
  static constexpr size_t kKinds = 3;

  std::byte* make_runs();
  std::byte* cut_run();
  std::byte* take_locked(Kind kind);
  std::byte* make(uint64_t bytes, uint64_t alignment_bytes, uint64_t count, size_t k);
  static size_t index(Kind kind) { return static_cast<size_t>(kind); }

  mutable std::mutex mutex_;
  const uint64_t bytes_[2];
  uint32_t left_[2];  // that may still be made
  uint32_t cut_left_;
  std::vector<std::byte*> idle_[kKinds];
  std::vector<platform::Mapping> memory_;
};

}  // namespace spw::cache
