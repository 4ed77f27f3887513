// Timescale reuse: how many accesses of k in a row find a datum that the same k have accessed before, on average over all windows
// of k accesses; for all k in linear time. (Li, Chakrabarti, Ding, Yuan: "Adaptive Software Caching for Efficient NVRAM Data
// Persistence", section III-B, equations 1 to 3, 5 and 6.)
//
// A reuse interval [s, e] are two accesses of one datum, at times s < e, with none in between. The windows of k accesses that hold
// both begin at max(1, e - k + 1) ... min(s, n - k + 1), of n accesses in all: for k > e - s these are
//
//     min(s, n - k + 1) - max(1, e - k + 1) + 1
//
// (equation 2 as printed counts one more for intervals away from both ends: for "abb", reuse(2) = 1/2 either way, but for "cabbac"
// it says 2/5 where one window in five holds a reuse). As a function of k each is a broken line with slope +1 from k = e - s on, less by
// one from k = e on and once more from k = n - s + 1 on. So three histograms, of e - s, e and n - s + 1, summed up twice, give the
// numerators for all k.
//
// Invariants: reuse(0) = reuse(1) = 0; reuse(k) <= reuse(k + 1) <= reuse(k) + 1; reuse(n) = n - data
// Threads: one at a time. Memory: three words for each k up to scale_max, and a table of the data.
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
  // reuse(k) for 0 <= k <= min(scale_max, accesses); `counts`: the numerator of equation 1 for each of these k.
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
  // Equation 3: the miss ratio at size k - reuse(k) is 1 - (reuse(k + 1) - reuse(k)). Not below the share of first accesses where the
  // trace is a whole run (`has_beginning`) rather than a piece out of the middle of one.
  MissRatioCurve curve(bool has_beginning = true) const;

 private:
  uint64_t accesses_;
  uint64_t data_;
  std::vector<uint64_t> counts_;
};

// Collects what TimescaleReuse is computed from, access by access, each in constant time.
class ReuseCollector {
 public:
  explicit ReuseCollector(uint64_t scale_max);

  void access(Datum datum);
  uint64_t accesses() const { return accesses_; }
  TimescaleReuse finish() const;

 private:
  const uint64_t scale_max_;
  uint64_t accesses_ = 0;
  LastAccess last_;
  std::vector<uint64_t> times_;  // [t]: reuse intervals with e - s = t
  std::vector<uint8_t> reuses_;  // [e]: whether the access at time e is a reuse
};

TimescaleReuse timescale_reuse(Trace trace, uint64_t scale_max = UINT64_MAX);

}  // namespace spw::locality
