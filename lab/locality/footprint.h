// Footprint: how many distinct data k accesses in a row touch, on average over all windows of k accesses. (Xiang, Ding,
// Luo, Bao: "HOTL", 2013; equation 4 of the paper on adaptive software caching.)
//
// A datum is missing from the windows that lie in a *gap* of its: before its first access, after its last, between two.
// With f the time of its first access, l that of its last one counted from the end, and t the time between two, a gap
// of length g (f, l or t) holds g - k windows of k accesses, if g > k. So
//
//     fp(k) = data - (sum over all gaps of max(0, g - k)) / (n - k + 1)
//
// Long gaps count with their mean within a bin (locality/gap_histogram.h).
//
// Threads: one at a time. Dual to locality/timescale_reuse.h: fp(k) + reuse(k) = k.
#pragma once

#include <utility>

#include "locality/gap_histogram.h"
#include "locality/miss_ratio_curve.h"

namespace spw::lab {

using locality::GapHistogram;
using locality::MissRatioCurve;

class Footprint {
 public:
  // Of a trace with so many accesses and data.
  Footprint(double accesses, double data, GapHistogram gaps)
      : accesses_(accesses), data_(data), gaps_(std::move(gaps)) {}

  double accesses() const { return accesses_; }
  double data() const { return data_; }
  const GapHistogram& gaps() const { return gaps_; }
  // 0 <= k <= accesses().
  double at(double k) const;
  // The miss ratio at size fp(k) is fp(k + 1) - fp(k). Not below the share of first accesses
  // where the trace is a whole run (`has_beginning`) rather than a piece out of the middle of one.
  MissRatioCurve curve(bool has_beginning = true) const;

 private:
  double accesses_;
  double data_;
  GapHistogram gaps_;
};

}  // namespace spw::lab
