// How much larger a cache would have to be for what it misses to be a hit, from what leaves it and comes back: nothing
// else of it has to be seen, so hits cost nothing.
//
// What left is a *ghost*, the newer the later it left. If the cache is LRU, a cache with room for x more data holds its
// x newest ghosts besides: so one that comes back with d newer ghosts is a hit from x = d + 1 on (Mattson et al.,
// 1970). For other policies this is what they would do if the rest of the memory were LRU.
// A datum is in the sample when its hash is below a threshold, (sample.h): each stands for 1 / rate like it,
// and its distance counts 1 / rate times. When more than data_max ghosts are in the sample the rate is halved.
//
// Invariants: sampled ghosts <= data_max; of each, the tree counts 1 at the time it left
// Threads: samples() any; the others one at a time. Memory: some 100 bytes for each of data_max. Time: logarithmic, and
// linear in data_max once in a while.
#pragma once

#include <cstdint>
#include <vector>

#include "base/atomic.h"
#include "locality/gap_histogram.h"
#include "locality/last_access.h"
#include "locality/order_tree.h"
#include "locality/sample.h"
#include "locality/trace.h"

namespace spw::locality {

class GhostDistances {
 public:
  static constexpr uint64_t kDataMax = 16384;

  explicit GhostDistances(double rate = 1, uint64_t data_max = kDataMax);

  bool samples(Datum datum) const { return sample_.has(datum); }
  double rate() const { return sample_.rate(); }

  // Of data in the sample.
  void left(Datum datum);
  // The `extra` from which on this was a hit; 0: it is no ghost. `is_older`: it left before the last mark().
  uint64_t came(Datum datum, bool* is_older = nullptr);
  void mark() { mark_ = now_; }
  // [first, first + count) are no ghosts any more, and did not come back either. In or out of the sample.
  void forget(Datum first, uint64_t count = 1);

  // So many of those that came back would have been hits with room for `extra` more data.
  struct Saved {
    double extra;
    double misses;
  };
  // In order of `extra`; the last one is of all that came back.
  std::vector<Saved> saved() const;
  // The same of what came() said of some of them, each with the weight 1 / rate() of that time.
  static std::vector<Saved> saved_of(const GapHistogram& distances);

 private:
  uint64_t take(Datum datum);
  void make_room();

  const uint64_t data_max_;
  Sample sample_;
  LastAccess left_at_;
  OrderTree order_;
  uint64_t now_ = 0;
  uint64_t mark_ = 0;
  uint64_t ghosts_ = 0;
  GapHistogram distances_;
};

}  // namespace spw::locality
