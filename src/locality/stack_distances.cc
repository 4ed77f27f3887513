#include "locality/stack_distances.h"

#include "locality/last_access.h"

namespace spw::locality {

namespace {

// Which times are some datum's latest access: a Fenwick tree over the trace's times.
class Latest {
 public:
  explicit Latest(uint64_t times) : sums_(times + 1) {}
  void change(uint64_t time, int64_t by) {
    for (; time < sums_.size(); time += time & -time) sums_[time] += by;
  }
  int64_t up_to(uint64_t time) const {
    int64_t sum = 0;
    for (; time > 0; time &= time - 1) sum += sums_[time];
    return sum;
  }

 private:
  std::vector<int64_t> sums_;
};

}  // namespace

std::vector<uint64_t> stack_distances(Trace trace) {
  LastAccess last;
  Latest latest(trace.size());
  std::vector<uint64_t> distances(1);
  uint64_t time = 0;
  for (const Datum datum : trace) {
    const uint64_t before = last.exchange(datum, ++time);
    size_t distance = 0;
    if (before != 0) {
      distance = last.size() - static_cast<uint64_t>(latest.up_to(before)) + 1;
      latest.change(before, -1);
    }
    latest.change(time, 1);
    if (distances.size() <= distance) distances.resize(distance + 1);
    ++distances[distance];
  }
  return distances;
}

MissRatioCurve exact_curve(Trace trace) {
  MissRatioCurve curve;
  if (trace.empty()) return curve;
  const std::vector<uint64_t> distances = stack_distances(trace);
  uint64_t misses = trace.size();
  for (size_t size = 1; size < distances.size(); ++size) {
    misses -= distances[size];
    curve.add(static_cast<double>(size), static_cast<double>(misses) / static_cast<double>(trace.size()));
  }
  return curve;
}

}  // namespace spw::locality
