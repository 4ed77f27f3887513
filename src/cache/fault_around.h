// How much a miss brings along: units of 2^level neighbouring blocks, chosen for each part of the space by what its
// misses show (--block auto). Blocks stay the unit of everything else; with a fixed block size nothing here is asked.
//
// What is measured: the *sibling* of a unit is the other half of the aligned pair it belongs to. A unit came in alone;
// q is the chance that its sibling is missed soon after, while the first may still be there.
// What follows: bringing the sibling along costs its transfer, v bytes, and saves a request and a transfer, c + v,
// where it is needed (c: what a request costs beside its transfer, in bytes of transfer). Where it is not needed, it
// takes the memory of something that is missed in its turn with a chance r. So units are doubled where
//     q (c + v) > v + (1 - q) r (c + v),   that is   q > (v + r (c + v)) / ((1 + r) (c + v)) = needed(v)
// and halved where q of the halves is below that: one miss in kExploreEvery brings half a unit, to see. 4 KiB: 0.36, 64
// KiB: 0.84, with what a request costs a device that has many under way. Where few threads wait at a time nothing hides
// how long each waits, and c is larger (request_bytes): with one thread 0.24 and 0.56.
// Whether blocks are *used* is not asked, so it works where uses cannot be seen (unmodified programs).
//
// "Soon" is before an eighth as many blocks as there are frames have been brought in, so that most likely the first is
// still there, and two misses at random places are soon after each other with a chance below an eighth of the memory's
// share of the data. Recent misses are in a direct-mapped table. An entry:
//
//      63                                 38 37                            4 3        0
//     +--------------------------------------+------------------------------+----------+
//     | blocks brought by then, modulo 2^26   | number of the unit (34)      | level + 1|
//     +--------------------------------------+------------------------------+----------+
//
// Areas of kAreaBytes each have a level and counts of their own; areas that are kAreas apart share them. One where
// nothing was missed so far begins a level below the area before it.
// Threads: any, without a lock. All of it is hints: an update that is lost costs a sample.
// Limits: a unit is at most kUnitBytesMax, a group of blocks, and the
// share of a partition's frames that may be read ahead.
#pragma once

#include <cstdint>
#include <memory>

#include "base/atomic.h"
#include "base/ids.h"
#include "base/units.h"

namespace spw::cache {

class FaultAround {
 public:
  static constexpr uint64_t kAreaBytes = 16 * kMiB;
  static constexpr uint64_t kUnitBytesMax = 256 * kKiB;
  static constexpr uint32_t kExploreEvery = 8;
  static constexpr uint32_t kSamplesMin = 32;

  // `blocks_max`: of a unit.
  FaultAround(unsigned block_shift, uint32_t frame_count, uint32_t blocks_max);

  struct Unit {
    BlockId first;
    uint32_t count = 1;          // a power of two; aligned to itself
    bool is_other_half = false;  // of a unit that was brought by halves, to see
  };
  // Of a miss on `block`, which its store has to be read for: what is to be brought.
  Unit on_miss(BlockId block);

  unsigned level_of(BlockId block) const { return area_of(block).level.load_relaxed(); }
  // What a request costs beside its transfer, on an SSD of 1 GB/s: 15 microseconds where enough are under way to keep
  // it busy, and 64 more where one thread waits. With n of them that is a part of 1/n of what a miss takes, and of 1/n
  // of the misses.
  static constexpr uint64_t kRequestBytes = 16 * kKiB, kWaitBytes = 64 * kKiB;
  // The q at which units of so many bytes may as well be doubled as not.
  static double needed(uint64_t unit_bytes, double request_bytes = kRequestBytes);

  // A thread that has missed waits from now on; and no longer.
  void begin_wait();
  void end_wait() { waiting_.fetch_sub_relaxed(1); }
  double request_bytes() const;
  uint64_t metadata_bytes() const;

 private:
  static constexpr uint32_t kAreas = 1024;
  // How often a unit came in alone, and how often its sibling was missed soon after.
  struct Count {
    Atomic<uint16_t> alone;
    Atomic<uint16_t> followed;
  };
  struct Area {
    Atomic<uint8_t> level;
    Atomic<uint8_t> turn;
    Atomic<uint8_t> has_begun;
    Count whole, half;  // of units of this level, and of the one below
  };

  Area& area_of(BlockId block) const;
  void begin_area(Area& area, BlockId block) const;
  Atomic<uint64_t>& recent_of(uint64_t pair, unsigned level) const;
  uint64_t stamp() const;
  bool take_sibling(BlockId block, unsigned level);
  void remember(BlockId block, unsigned level);
  void change_level(Area& area, unsigned level);
  void adapt(Area& area);

  const unsigned block_shift_;
  const unsigned level_max_;
  const uint64_t soon_;          // blocks brought
  const unsigned recent_shift_;  // of a hash, to an entry
  Atomic<uint64_t> brought_{0};
  Atomic<uint32_t> waiting_{0};       // threads
  Atomic<uint32_t> waiting_mean_{0};  // in 256ths; 0: none has waited so far
  std::unique_ptr<Area[]> areas_;
  std::unique_ptr<Atomic<uint64_t>[]> recent_;
};

}  // namespace spw::cache
