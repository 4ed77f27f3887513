// Whether starting steps takes the time of whoever starts them: devices without a queue (memory as a disk, compressed
// or not) and file systems that have to find room first do all or much of the work in the system call that submits.
// Then one thread is held up by what others asked for, and what somebody waits for lies behind it; such steps are
// better handed to other threads.
//
// A score rises with each submission that took longer than a device with a queue needs, and falls with each that did
// not. While steps are handed on one submission in kSampleEvery is made as before, to see.
// Threads: one at a time. Limits: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "store/engine/engine.h"

namespace spw::store {

class StartTimes {
 public:
  static constexpr unsigned kScoreMax = 32, kSlowScore = 24, kFastScore = 8;
  static constexpr unsigned kSampleEvery = 256;
  // What a step takes that only goes to a queue: the call, and its pages one by one.
  static constexpr uint64_t kStepNs = 8'000, kPageNs = 500;
  static constexpr uint64_t kPageBytes = 4096;

  // Somebody waits for a read of so few bytes, so its own time is as good as another thread's.
  static constexpr uint64_t kOwnReadBytesMax = 16 * kKiB;
  static bool takes_own_time(const RawIo& io) { return io.op == Op::kRead && io.bytes <= kOwnReadBytesMax; }

  // Of the next submission: whether its steps are to be handed on.
  bool hands_on() { return is_slow_ && ++turn_ % kSampleEvery != 0; }
  // One that was not handed on took so long.
  void note(uint64_t steps, uint64_t bytes, uint64_t ns) {
    const bool was_slow = ns > steps * kStepNs + bytes / kPageBytes * kPageNs;
    score_ = was_slow ? std::min(score_ + 1, kScoreMax) : score_ - std::min(score_, 1u);
    if (score_ >= kSlowScore) is_slow_ = true;
    if (score_ <= kFastScore) is_slow_ = false;
  }

 private:
  unsigned score_ = 0;
  unsigned turn_ = 0;
  bool is_slow_ = false;
};

}  // namespace spw::store
