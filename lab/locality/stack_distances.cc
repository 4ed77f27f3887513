#include "lab/locality/stack_distances.h"

#include "locality/last_access.h"
#include "locality/order_tree.h"

namespace spw::lab {

std::vector<uint64_t> stack_distances(Trace trace) {
  locality::LastAccess last;
  locality::OrderTree latest(trace.size());  // the data's latest accesses
  std::vector<uint64_t> distances(1);
  uint64_t time = 0;
  for (const Datum datum : trace) {
    const uint64_t before = last.exchange(datum, ++time);
    size_t distance = 0;
    if (before != 0) {
      distance = last.size() - latest.up_to(before) + 1;
      latest.unmark(before);
    }
    latest.mark(time);
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

}  // namespace spw::lab
