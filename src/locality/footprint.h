// Footprint: how many distinct data k accesses in a row touch, on average over all windows of k accesses. (Xiang, Ding,
// Luo, Bao: "HOTL", 2013; equation 4 of the paper on adaptive software caching.)
//
// A datum is missing from the windows that lie in a *gap* of its: before its first access, after its last, between two.
// With f the time of its first access, l that of its last one counted from the end, and t the time between two, a gap
// of length g (f, l or t) holds g - k windows of k accesses, if g > k. So
//
//     fp(k) = data - (sum over all gaps of max(0, g - k)) / (n - k + 1)
//
// The gaps are kept in a histogram with bins of rising width, so that
// traces of any length fit in a few hundred kilobytes. Gaps up to
// GapHistogram::kExactMax are counted exactly; longer ones count with
// their mean within a bin of less than 1 % of their length.
//
// Threads: one at a time. Dual to timescale_reuse.h: fp(k) + reuse(k) = k.
#pragma once

#include <cstdint>
#include <vector>

#include "locality/miss_ratio_curve.h"

namespace spw::locality {

// How often each gap length occurred; a count may be a fraction (of sampled data each stands for many).
class GapHistogram {
 public:
  static constexpr unsigned kSubBits = 8;  // bins an octave: 2^(kSubBits - 1)
  static constexpr uint64_t kExactMax = (uint64_t{1} << kSubBits) - 1;

  struct Bin {
    uint64_t first = 0;  // gap lengths [first, next bin's first)
    double count = 0;
    double sum = 0;  // of the lengths
  };

  void add(uint64_t gap, double count = 1);
  void add_all(const GapHistogram& other, double factor = 1);
  // In order of length; also empty ones, up to the last one that is not.
  const std::vector<Bin>& bins() const { return bins_; }

 private:
  static size_t bin_of(uint64_t gap);
  static uint64_t first_of(size_t bin);

  std::vector<Bin> bins_;
};

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
  // The miss ratio at size fp(k) is fp(k + 1) - fp(k). As for TimescaleReuse::curve().
  MissRatioCurve curve(bool has_beginning = true) const;

 private:
  double accesses_;
  double data_;
  GapHistogram gaps_;
};

}  // namespace spw::locality
