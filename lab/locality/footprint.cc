#include "lab/locality/footprint.h"

#include <algorithm>
#include <vector>

namespace spw::lab {

double Footprint::at(double k) const {
  double missing = 0;
  for (const GapHistogram::Bin& bin : gaps_.bins())
    if (bin.count > 0 && bin.sum > k * bin.count) missing += bin.sum - k * bin.count;
  return data_ - missing / (accesses_ - k + 1);
}

// One pass from the longest gaps down: at the lower edge k of each bin, the sums over all longer ones are at hand.
MissRatioCurve Footprint::curve(bool has_beginning) const {
  struct Edge {
    double footprint;
    double miss_ratio;
  };
  std::vector<Edge> edges;
  const std::vector<GapHistogram::Bin>& bins = gaps_.bins();
  double count = 0;
  double sum = 0;
  for (size_t bin = bins.size(); bin-- > 0;) {
    count += bins[bin].count;
    sum += bins[bin].sum;
    // Gaps of length k hold no window of k, so they may be in the sums, but not among those that are longer. In a wide
    // bin they cannot be told apart, and are few.
    const double k = static_cast<double>(bins[bin].first);
    const double windows = accesses_ - k + 1;
    if (k == 0 || windows <= 1) continue;
    const double longer_count = count - (bins[bin].first <= GapHistogram::kExactMax ? bins[bin].count : 0);
    const double longer_sum = sum - (bins[bin].first <= GapHistogram::kExactMax ? bins[bin].sum : 0);
    const double missing = std::max(0.0, longer_sum - k * longer_count);
    const double missing_next = std::max(0.0, missing - longer_count);
    edges.push_back({data_ - missing / windows, missing / windows - missing_next / (windows - 1)});
  }
  const double first_accesses = has_beginning && accesses_ > 0 ? data_ / accesses_ : 0;
  MissRatioCurve curve;
  for (size_t edge = edges.size(); edge-- > 0;)
    curve.add(edges[edge].footprint, std::max(edges[edge].miss_ratio, first_accesses));
  if (has_beginning) curve.add(data_, first_accesses);
  return curve;
}

}  // namespace spw::lab
