#include "telemetry/latencies.h"

#include <algorithm>
#include <cmath>

namespace spw::telemetry {

void Latencies::add(const LatencyBlock& block) {
  for (size_t i = 0; i < kClasses; ++i) counts[i] += block.counts[i].load_relaxed();
  worst_ns = std::max(worst_ns, block.worst_ns.load_relaxed());
}

Latencies Latencies::since(const Latencies& before) const {
  Latencies later = *this;
  for (size_t i = 0; i < kClasses; ++i) later.counts[i] -= std::min(before.counts[i], counts[i]);
  return later;
}

uint64_t Latencies::count() const {
  uint64_t sum = 0;
  for (const uint64_t count : counts) sum += count;
  return sum;
}

uint64_t Latencies::quantile_ns(double share) const {
  const uint64_t all = count();
  const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(all)));
  uint64_t sum = 0;
  for (size_t i = 0; i < kClasses && all > 0; ++i) {
    sum += counts[i];
    if (counts[i] > 0 && sum >= wanted) return std::min(latency_class_end_ns(i), worst_ns);
  }
  return 0;
}

LatencySummary summary_of(const Latencies& latencies) {
  return {latencies.count(), latencies.quantile_ns(0.5), latencies.quantile_ns(0.99),
          latencies.quantile_ns(0.999), latencies.worst_ns};
}

}  // namespace spw::telemetry
