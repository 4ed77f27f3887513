// How much of the cap is for compressed pages, beside frames: --compress chooses it anew as the program goes on, by
// what misses cost with each share (locality/compressed_share.h). All of that is measured: distances from a sample of
// what comes back, what pages compress to, and what opening them and reading them from the device takes.
//
//     target_bytes()   what the pool may have, its budget; the frames leave it, or what it still has if that is more
//     wanted           what was found best; the target goes there by steps of 1 / kSteps of the memory
//     left_bytes()     what frames have left, at most kAheadBytesMax ahead of them: more it cannot take whatever its budget
//
// The pool has 1 / kBeginShare before blocks have to leave memory, so that the first of them find room. When some were
// tried it has none, if they do not compress; else it begins with 1 / kFirstShare, and grows as it fills, until enough
// came back to tell what is best: a page that is opened costs a fraction of one that is read from the device.
// Threads: look() and is_moving() one; the rest any. Lifetime: shorter than that of its parts, and than that of the
// stores' use of their memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/atomic.h"
#include "locality/compressed_share.h"
#include "process/curve_observer.h"
#include "store/compressed_store.h"

namespace spw::process {

class CompressedShare final : public store::SharesMemory {
 public:
  static constexpr uint64_t kSteps = 32;
  static constexpr uint64_t kBeginShare = 16, kFirstShare = 4;
  // While it grows, it is so much of the cap ahead of what it holds.
  static constexpr uint64_t kMarginShare = 8;
  static constexpr uint64_t kAheadShare = 32, kAheadBytesMax = uint64_t{16} << 20;
  // Frames keep 1 / kFramesShareMin of the memory at least.
  static constexpr uint64_t kFramesShareMin = locality::kShares / (locality::kShares - locality::kShareMax);

  struct Parts {
    store::CompressedMemory& memory;
    CurveObserver& curve;
    const cache::SharedCache& cache;
    uint64_t frame_bytes;
    bool is_child;
  };
  // What the pool may take before anything is known, and ahead of what frames left.
  static uint64_t first_budget_bytes(uint64_t memory_bytes) {
    return std::min(memory_bytes / kAheadShare, kAheadBytesMax);
  }
  // A forked child has what its parent had.
  explicit CompressedShare(const Parts& parts);
  ~CompressedShare() { parts_.memory.budget.others.store_release(nullptr); }

  // What frames have to leave.
  uint64_t bytes() const;
  uint64_t target_bytes() const { return target_bytes_.load_relaxed(); }
  uint64_t held_bytes() const { return parts_.memory.budget.bytes.load_relaxed(); }
  uint64_t left_bytes() const override;
  // At each look at memory: frames and pool have `memory_bytes`, of which the pool may have `pool_bytes_max` and frames
  // may have `limit_bytes` now. Blocks may leave once they are watched, and do when frames are full.
  struct Seen {
    uint64_t memory_bytes, pool_bytes_max, limit_bytes;
    bool is_watching, blocks_leave;
  };
  void look(const Seen& seen, uint64_t now_ns);
  // Whether the next look should come soon: it begins, or moves, or waits for frames to leave, though not for ever.
  bool is_moving() const {
    const bool waits = waiting_looks_ < kWaitingLooksMax;
    if (!has_begun_) return waits;
    return blocks_leave_ && (wanted_bytes_ != target_bytes() || (is_to_follow() && waits));
  }
  bool is_above() const { return held_bytes() > parts_.memory.budget.bytes_max.load_relaxed(); }
  // Whether one should come now and then, since the pool may fill.
  bool is_growing() const { return !has_decided_ && fits_ >= kFitsMin; }
  // What is more than the budget goes to the store, as far as that goes on; waits for that.
  void evict_to_budget();

 private:
  static constexpr uint32_t kWaitingLooksMax = 256;
  // Of those that came back, so few may have left before memory had its present size.
  static constexpr double kOlderMax = 0.125;
  static constexpr uint64_t kDecideNs = 500'000'000;
  // Fewer that came back say too little.
  static constexpr double kCameBackMin = 4096;
  static constexpr uint64_t kTriedMin = 64;
  // Below it the pool is of no use, and frames have all.
  static constexpr double kFitsMin = 0.05;
  // What a change has to save.
  static constexpr double kGainMin = 0.03;
  // Of any miss, beside opening pages and the device: the fault, and a frame for it.
  static constexpr double kFaultNs = 3000;
  // Where none was measured yet.
  static constexpr double kDeviceNs = 80'000;
  // The latest period counts for as much as all before it.
  static constexpr double kMemory = 0.5;

  // Frames have to leave what the pool may have, or the pool what is above its budget.
  bool is_to_follow() const { return left_bytes() < target_bytes() || is_above(); }
  void keep_within(uint64_t pool_bytes_max);
  void measure();
  void begin();
  void grow();
  void decide(uint64_t limit_bytes);
  locality::CompressionCosts costs() const;

  const Parts parts_;
  Atomic<uint64_t> memory_bytes_;
  uint64_t pool_bytes_max_ = 0;
  bool blocks_leave_ = false;
  uint32_t waiting_looks_ = 0;  // in a row: to begin, and then for frames to leave
  Atomic<uint64_t> target_bytes_{held_bytes()};
  uint64_t wanted_bytes_ = target_bytes();
  uint64_t next_ns_ = 0;
  bool has_begun_ = false, has_decided_ = false;
  store::PageCodec::Totals totals_;
  uint64_t misfits_ = 0;
  double fits_ = 0, kept_bytes_ = 0;  // as CompressionCosts has them
  double device_ns_ = 0;
  locality::GapHistogram distances_;
};

}  // namespace spw::process
