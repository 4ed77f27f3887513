// Which way of flushing gets more of the program's writes done, by trying both: `--flush auto`.
//
// Neither is better everywhere. Threads that flush by themselves keep all devices at work and dirty blocks few, which
// is what --dirty is for. One thread that waits for each batch lets dirty blocks become more where the devices take no
// more requests anyway, and then each request writes more of them.
//
// A trial: of either way, direct flush first, kSettleNs and then kMeasureNs. What counts is the rate of writes that
// were paid for: blocks that the program's threads have written, less those by which the dirty ones have become more.
// Background is chosen if it is ahead by kAheadPercent; the choice is kept for kKeepNs. Only time in which too much is
// dirty counts: where look() was not called for kGapNs, the trial begins anew.
//
//   phase          | until                                | then
//   kSettle of way | kSettleNs                            | kMeasure of the same way
//   kMeasure       | kMeasureNs                           | kSettle of background, or after that kKept
//   kKept          | kKeepNs                              | kSettle of direct flush
//   not kKept      | look() not called for kGapNs         | kSettle of direct flush
//
// Threads: any; look() returns at once while another thread is in it. Limits: none.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/atomic.h"

namespace spw::files {

class FlushChoice {
 public:
  static constexpr uint64_t kSecondNs = 1'000'000'000;
  static constexpr uint64_t kSettleNs = kSecondNs, kMeasureNs = kSecondNs, kGapNs = kSecondNs / 2;
  static constexpr uint64_t kKeepNs = 30 * kSecondNs;
  static constexpr uint64_t kAheadPercent = 5;
  enum class Way : uint8_t { kDirect, kBackground };
  // In blocks: written by the program ever, and dirty now.
  struct Figures {
    uint64_t written = 0;
    uint64_t dirty = 0;
  };

  Way way() const { return way_.load_relaxed(); }
  // Too much is dirty at this time, which never goes back by more than a moment. `figures`: a function, which is
  // called seldom. True: way() is another one now.
  template <class Read>
  bool look(uint64_t now_ns, Read figures) {
    const uint64_t seen_ns = seen_ns_.load_relaxed();
    if (now_ns < next_ns_.load_relaxed() && now_ns < seen_ns + kGapNs / 8) return false;
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    seen_ns_.store_relaxed(now_ns);
    if (phase_ != Phase::kKept && now_ns > seen_ns + kGapNs)
      return enter(Phase::kSettle, Way::kDirect, now_ns);
    return now_ns >= next_ns_.load_relaxed() && go_on(now_ns, figures());
  }

 private:
  enum class Phase : uint8_t { kSettle, kMeasure, kKept };
  bool go_on(uint64_t now_ns, const Figures& figures);
  bool enter(Phase phase, Way way, uint64_t now_ns);

  Atomic<Way> way_{Way::kDirect};
  Atomic<uint64_t> next_ns_{0};  // when the phase ends
  Atomic<uint64_t> seen_ns_{0};  // when there was a look() that counted
  std::mutex mutex_;             // guards what follows
  Phase phase_ = Phase::kSettle;
  uint64_t began_ns_ = 0;
  Figures before_;          // when what is measured began
  double direct_rate_ = 0;  // blocks a nanosecond
};

}  // namespace spw::files
