// --memory auto: the cap follows what the machine has free.
//
// Every period the adapter notes the frames in use, the blocks filled and what memory is available, and keeps the last
// kHistory (N) of them. From the mean change it predicts the next kHorizon (M) periods:
//   available memory is below the reserve, or predicted to fall below it   => the limit shrinks by what is lacking
//   more blocks are predicted to come than frames are free                 => the limit grows by what is predicted, at most by
//                                                                             half of what is available
//                                                                                 above the reserve
// Blocks, not misses: one miss may bring 64 of them. By misses a program that went through its memory in order looked
// content. A change smaller than kStepShare of the limit is not worth its cost, but for the last one up to all frames.
// (UMap, section 3.1.1: N = 5, M = 10.)
// Threads: AdaptiveLimit none, it is pure; MemoryAdapter has one of its own. Limits: between kLimitShareMin of the
// frames and all of them, which the tables are made for.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "access/engine.h"
#include "cache/cache.h"
#include "platform/thread.h"

namespace spw::process {

class AdaptiveLimit {
 public:
  static constexpr unsigned kHistory = 5;
  static constexpr unsigned kHorizon = 10;
  static constexpr uint32_t kStepShare = 64;
  static constexpr uint32_t kLimitShareMin = 16;
  // Left to others: this share of the machine's memory.
  static constexpr uint64_t kReserveShare = 16;

  struct Sample {
    uint64_t used_frames = 0;
    uint64_t filled_blocks = 0;  // since the start
    uint64_t available_bytes = 0;
  };

  AdaptiveLimit(uint32_t frames_max, uint64_t frame_bytes, uint64_t machine_bytes)
      : frames_max_(frames_max), frame_bytes_(frame_bytes), reserve_bytes_(machine_bytes / kReserveShare) {}

  // The limit that holds from now on, given the one that does.
  uint32_t next(const Sample& sample, uint32_t limit);

 private:
  double mean_change(uint64_t Sample::* field) const;
  uint32_t bounded(double frames, uint32_t limit) const;

  const uint32_t frames_max_;
  const uint64_t frame_bytes_;
  const uint64_t reserve_bytes_;
  Sample history_[kHistory + 1];
  unsigned samples_ = 0;  // in history_, oldest first
};

// Of the machine, or what the control group of this process leaves, with all that is in it, whichever is less.
uint64_t available_memory_bytes();

// Blocks that were brought into the cache since the start, in whatever way.
uint64_t filled_blocks();

class MemoryAdapter {
 public:
  // What it is told of the world outside; tests make it up.
  struct Readings {
    uint64_t machine_bytes;
    std::function<uint64_t()> available_bytes;
    std::function<std::optional<uint64_t>()> resident_bytes;  // anonymous, of this process
    uint64_t period_ns;
    static Readings of_machine();
  };
  MemoryAdapter(cache::SharedCache& cache, access::Engine& engine, uint64_t frame_bytes,
                Readings readings = Readings::of_machine());
  ~MemoryAdapter() { stop(); }

  Status start();
  void stop();

 private:
  static constexpr uint64_t kPeriodNs = 500'000'000;
  void adapt(cache::Client& client);
  uint64_t used_frames() const;

  cache::SharedCache& cache_;
  access::Engine& engine_;
  const uint64_t frame_bytes_;
  const Readings readings_;
  AdaptiveLimit rule_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  platform::Thread thread_;
};

}  // namespace spw::process
