// The miss-ratio curve of an access stream of any length, from a sample of its data in bounded memory.
//
// A datum is in the sample when its hash is below a threshold (locality/sample.h). Each stands for 1 / rate like it.
// Times are those of the whole stream, so a reuse time needs no scaling, only its weight does; when more than data_max
// are in the sample the rate is halved and the data that no longer belong are forgotten: what was counted before keeps
// the weight it had. The curve is that of the footprint (footprint.h).
//
// Invariants: sampled data <= data_max; accesses() = accesses of the whole stream
// Threads: one at a time. Memory: 32 to 64 bytes for each of data_max, and the histogram.
// Limits: with few data in the sample the estimate is poor.
#pragma once

#include <cstdint>

#include "lab/locality/footprint.h"
#include "locality/last_access.h"
#include "locality/sample.h"
#include "locality/trace.h"

namespace spw::lab {

using locality::Datum;
using locality::LastAccess;
using locality::Sample;

class ReuseSampler {
 public:
  static constexpr uint64_t kDataMax = 8192;

  // rate: of the data, at first; in (0, 1].
  explicit ReuseSampler(double rate = 1, uint64_t data_max = kDataMax);

  // Any thread.
  bool samples(Datum datum) const { return sample_.has(datum); }
  double rate() const { return sample_.rate(); }

  // The next access of the stream.
  void access(Datum datum) {
    ++accesses_;
    if (samples(datum)) sampled_access(datum);
  }
  // `count` accesses of data that are not in the sample.
  void skip(uint64_t count) { accesses_ += count; }

  uint64_t accesses() const { return accesses_; }
  uint64_t sampled_data() const { return last_.size(); }
  Footprint footprint() const;
  uint64_t memory_bytes() const {
    return last_.memory_bytes() + gaps_.bins().capacity() * sizeof(GapHistogram::Bin);
  }

 private:
  void sampled_access(Datum datum);
  void lower_rate();

  uint64_t data_max_;
  Sample sample_;
  uint64_t accesses_ = 0;
  double data_ = 0;  // of the whole stream, estimated
  LastAccess last_;
  GapHistogram gaps_;
};

}  // namespace spw::lab
