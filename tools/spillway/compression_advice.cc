#include "compression_advice.h"

#include <algorithm>

#include "base/units.h"
#include "locality/compressed_share.h"

namespace spw::tool {

namespace {

constexpr uint64_t kTriedMin = 64;
// Less is within what the estimate is worth.
constexpr double kGainMin = 0.03;
// Of any miss, beside the wait for what it reads.
constexpr double kFaultNs = 10'000;
// Of what is read for the first time, or too rarely for any memory.
constexpr uint64_t kNeverWithin = uint64_t{1} << 50;

// Reads that more memory would have saved, by how much more, in pages.
locality::GapHistogram distances_of(const Advised& run, double pages_per_block) {
  locality::GapHistogram distances;
  const auto& curve = run.facts.curve;
  for (size_t i = 1; i < curve.size(); ++i)
    if (curve[i].reads < curve[i - 1].reads)
      distances.add(curve[i].memory_bytes - run.facts.memory_cap_bytes,
                    static_cast<double>(curve[i - 1].reads - curve[i].reads) * pages_per_block);
  distances.add(kNeverWithin, static_cast<double>(curve.back().reads) * pages_per_block);
  return distances;
}

}  // namespace

CompressionAdvice advise_compression(const Advised& run) {
  const telemetry::Facts& facts = run.facts;
  const telemetry::PageCompression& pages = facts.compression;
  CompressionAdvice advice;
  if (pages.tried < kTriedMin || facts.curve.size() < 2 || facts.curve.front().reads == 0) return advice;
  advice.is_known = true;
  advice.seconds = facts.wall_seconds;
  advice.fits = static_cast<double>(pages.fitted) / static_cast<double>(pages.tried);
  if (pages.fitted == 0) return advice;
  advice.ratio = static_cast<double>(kMmuPageBytes) / pages.kept_bytes;
  const double pages_per_block = static_cast<double>(facts.block_bytes) / static_cast<double>(kMmuPageBytes);
  const double read_ns =
      run.waited_seconds * 1e9 / (static_cast<double>(facts.curve.front().reads) * pages_per_block);
  const locality::CompressionCosts costs{.fits = advice.fits,
                                         .kept_bytes = pages.kept_bytes,
                                         .compress_ns = pages.compress_ns,
                                         .open_ns = pages.open_ns,
                                         .fault_ns = kFaultNs / pages_per_block,
                                         .device_ns = read_ns};
  const locality::SharedMemory memory{facts.memory_cap_bytes, facts.memory_cap_bytes};
  const auto distances = distances_of(run, pages_per_block);
  const uint64_t pool = locality::best_pool_bytes(distances, memory, costs);
  const double before = locality::misses_cost_ns(distances, memory, costs, 0),
               after = locality::misses_cost_ns(distances, memory, costs, pool);
  const double seconds = run.seconds_with(after / before);
  if (pool == 0 || seconds > facts.wall_seconds * (1 - kGainMin)) return advice;
  advice.pool_bytes = pool;
  advice.seconds = seconds;
  return advice;
}

}  // namespace spw::tool
