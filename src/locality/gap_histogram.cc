#include "locality/gap_histogram.h"

#include <bit>

namespace spw::locality {

// Lengths below 2^kSubBits have a bin each, then every octave 2^(kSubBits - 1) of them.
size_t GapHistogram::bin_of(uint64_t gap) {
  if (gap <= kExactMax) return gap;
  const unsigned octave = static_cast<unsigned>(std::bit_width(gap)) - kSubBits;
  return (octave << (kSubBits - 1)) + (gap >> octave);
}

uint64_t GapHistogram::first_of(size_t bin) {
  if (bin <= kExactMax) return bin;
  const unsigned octave = static_cast<unsigned>(bin >> (kSubBits - 1)) - 1;
  return (bin - (uint64_t{octave} << (kSubBits - 1))) << octave;
}

void GapHistogram::add(uint64_t gap, double count) {
  const size_t bin = bin_of(gap);
  while (bins_.size() <= bin) bins_.push_back({first_of(bins_.size()), 0, 0});
  bins_[bin].count += count;
  bins_[bin].sum += count * static_cast<double>(gap);
}

double GapHistogram::count() const {
  double count = 0;
  for (const Bin& bin : bins_) count += bin.count;
  return count;
}

void GapHistogram::add_all(const GapHistogram& other, double factor) {
  while (bins_.size() < other.bins_.size()) bins_.push_back({first_of(bins_.size()), 0, 0});
  for (size_t bin = 0; bin < other.bins_.size(); ++bin) {
    bins_[bin].count += factor * other.bins_[bin].count;
    bins_[bin].sum += factor * other.bins_[bin].sum;
  }
}

}  // namespace spw::locality
