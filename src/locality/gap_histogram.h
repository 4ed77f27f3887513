// How often lengths occurred, of gaps between accesses or of distances. Bins of rising width, so that traces of any
// length fit in a few hundred kilobytes: up to kExactMax each length is counted by itself; longer ones count with their
// mean within a bin of less than 1 % of their length.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spw::locality {

// A count may be a fraction (of sampled data each stands for many).
class GapHistogram {
 public:
  static constexpr unsigned kSubBits = 8;  // bins an octave: 2^(kSubBits - 1)
  static constexpr uint64_t kExactMax = (uint64_t{1} << kSubBits) - 1;

  struct Bin {
    uint64_t first = 0;  // lengths [first, next bin's first)
    double count = 0;
    double sum = 0;  // of the lengths
  };

  void add(uint64_t gap, double count = 1);
  void add_all(const GapHistogram& other, double factor = 1);
  double count() const;  // of all
  // In order of length; also empty ones, up to the last one that is not.
  const std::vector<Bin>& bins() const { return bins_; }

 private:
  static size_t bin_of(uint64_t gap);
  static uint64_t first_of(size_t bin);

  std::vector<Bin> bins_;
};

}  // namespace spw::locality
