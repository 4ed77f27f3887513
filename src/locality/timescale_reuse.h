// Timescale reuse: how many accesses of k in a row find a datum that the same k have accessed before, on average over
// all windows of k accesses; for all k in linear time. (Li, Chakrabarti, Ding, Yuan: "Adaptive Software Caching for
// Efficient NVRAM Data Persistence", section III-B, equations 1 to 3, 5 and 6.)
//
// A reuse interval [s, e] are two accesses of one datum, at times s < e, with
// none in between. The windows of k accesses that hold both begin at max(1, e -
// k + 1) ... min(s, n - k + 1), of n accesses in all: for k > e - s these are
//
//     min(s, n - k + 1) - max(1, e - k + 1) + 1
//
// (equation 2 as printed counts one more for intervals away from both ends: for "abb", reuse(2) = 1/2 either way, but
// for "cabbac" it says 2/5 where one window in five holds a reuse). As a function of k each is a broken line with slope
// +1 from k = e - s on, less by one from k = e on and once more from k = n - s + 1 on. So three histograms, of e - s, e
// and n - s + 1, summed up twice, give the numerators for all k.
//
// An interval with e - s >= scale_max has no part in any of this for k <= scale_max, so a collector forgets an access
// after scale_max others. It also forgets all accesses at the end of a failure-atomic section, as if the next section
// had other data (section III-B of the paper renames them): what is flushed there is not there to be written again.
//
// Invariants: reuse(0) = reuse(1) = 0; reuse(k) <= reuse(k + 1) <= reuse(k) + 1; reuse(n) = n - data
// Threads: one at a time. Memory: for each k up to scale_max or the trace's length, 10 to 20 bytes, and 16 to 64 more
// for each datum among scale_max accesses in a row (of one section).
// Limits: only k <= scale_max are known, and of curves the sizes they lead to.
#pragma once

#include <cstdint>
#include <vector>

#include "locality/last_access.h"
#include "locality/miss_ratio_curve.h"
#include "locality/trace.h"

namespace spw::locality {

class TimescaleReuse {
 public:
  // reuse(k) for 0 <= k <= min(scale_max, accesses); `data`: the accesses that are
  // no reuse, be it because the last access of the datum was scale_max or more
  // accesses before; `counts`: the numerator of equation 1 for each of these k.
  TimescaleReuse(uint64_t accesses, uint64_t data, std::vector<uint64_t> counts)
      : accesses_(accesses), data_(data), counts_(std::move(counts)) {}

  uint64_t accesses() const { return accesses_; }
  uint64_t data() const { return data_; }
  uint64_t scale_max() const { return counts_.size() - 1; }
  // Equation 1. 0 <= k <= scale_max().
  double reuse(uint64_t k) const {
    return static_cast<double>(counts_[k]) / static_cast<double>(accesses_ - k + 1);
  }
  // The average number of distinct data in k accesses (equation 5).
  double footprint(uint64_t k) const { return static_cast<double>(k) - reuse(k); }
  // Equation 3: the miss ratio at size k - reuse(k) is 1 - (reuse(k + 1) - reuse(k)). At the sizes 1, 2, ... size_max,
  // for caches of so few data that each counts: that after the longest windows whose footprint fits, so a loop's drop
  // stands at the loop's size and not spread around it. Windows longer than half of the trace are too few to tell
  // anything. Of a piece of a trace.
  MissRatioCurve curve_of_small_sizes(uint32_t size_max) const;

 private:
  uint64_t accesses_;
  uint64_t data_;
  std::vector<uint64_t> counts_;
};

// Collects what TimescaleReuse is computed from, access by access, each in constant time (amortised).
class ReuseCollector {
 public:
  explicit ReuseCollector(uint64_t scale_max);  // at least 1

  void access(Datum datum);
  // What was accessed until now is other data than what comes. In constant time.
  void end_section() { section_began_ = accesses_ + 1; }
  uint64_t accesses() const { return accesses_; }
  TimescaleReuse finish() const;
  uint64_t memory_bytes() const {
    return last_.memory_bytes() + times_.capacity() * sizeof(uint64_t) + reuses_.capacity() +
           begins_.capacity();
  }

 private:
  const uint64_t scale_max_;
  uint64_t accesses_ = 0;
  uint64_t data_ = 0;
  uint64_t section_began_ = 1;  // the time of its first access
  LastAccess last_;
  std::vector<uint64_t> times_;  // [t]: reuse intervals with e - s = t
  std::vector<uint8_t> reuses_;  // [e]: whether the access at time e is a reuse
  // Of the last scale_max accesses, a ring: whether the access begins
  // a reuse interval. The latest one's place is `newest_`.
  std::vector<uint8_t> begins_;
  size_t newest_ = 0;
};

}  // namespace spw::locality
