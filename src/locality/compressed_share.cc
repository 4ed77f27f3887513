#include "locality/compressed_share.h"

#include <algorithm>

namespace spw::locality {

namespace {

// Those with a distance of up to `most`.
double count_up_to(const GapHistogram& distances, double most) {
  double count = 0;
  for (const GapHistogram::Bin& bin : distances.bins()) {
    if (bin.count <= 0) continue;
    if (bin.sum / bin.count > most) break;
    count += bin.count;
  }
  return count;
}

}  // namespace

double misses_cost_ns(const GapHistogram& distances, const SharedMemory& memory,
                      const CompressionCosts& costs, uint64_t pool_bytes) {
  const double pool = static_cast<double>(pool_bytes);
  const double frames = static_cast<double>(memory.memory_bytes) - pool;
  const double less = static_cast<double>(memory.frames_bytes) - frames;
  // What is within the frames now, and would not be.
  const double inner = less > 0 ? count_up_to(distances, less) : 0;
  const double saved = less < 0 ? count_up_to(distances, -less) : 0;
  const double beyond = distances.count() - saved;
  const double misses = inner + beyond;
  double from_pool = 0;
  if (pool > 0 && costs.fits > 0 && costs.kept_bytes > 0) {
    const double held = pool / costs.kept_bytes / costs.fits * costs.page_bytes;
    const double reach = std::max(held - frames, 0.0);
    const double within = std::min(inner, count_up_to(distances, std::min(reach, std::max(less, 0.0)))) +
                          std::max(count_up_to(distances, std::max(reach - less, 0.0)) - saved, 0.0);
    from_pool = costs.fits * std::min(within, misses);
  }
  const double compressed = pool > 0 ? costs.fits * costs.compress_ns : 0;
  return misses * (costs.fault_ns + compressed) + from_pool * costs.open_ns +
         (misses - from_pool) * costs.device_ns;
}

uint64_t best_pool_bytes(const GapHistogram& distances, const SharedMemory& memory,
                         const CompressionCosts& costs) {
  uint64_t best = 0;
  double least = misses_cost_ns(distances, memory, costs, 0);
  for (uint64_t share = 1; share <= kShareMax; ++share) {
    const uint64_t pool_bytes = memory.memory_bytes / kShares * share;
    const double cost = misses_cost_ns(distances, memory, costs, pool_bytes);
    if (cost >= least) continue;
    least = cost;
    best = pool_bytes;
  }
  return best;
}

}  // namespace spw::locality
