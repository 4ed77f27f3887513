// How many blocks would be read with more memory, from what is evicted and comes back (locality/ghost_distances.h): what `spillway advise`
// asks for.
//
// Threads: any. Costs: of blocks that are not in the sample a hash each time they come or leave, of the others a lock and a logarithm.
#pragma once

#include <mutex>
#include <vector>

#include "cache/cache.h"
#include "locality/ghost_distances.h"
#include "telemetry/report.h"

namespace spw::runtime {

class CurveObserver final : public cache::Observer {
 public:
  void left(BlockId block) override;
  void came(BlockId block) override;
  void ended(BlockId block) override;

  // From `memory_bytes`, with which `reads` blocks were read, upwards: at most kPointsMax points.
  std::vector<telemetry::CurvePoint> curve(uint64_t memory_bytes, uint64_t block_bytes, uint64_t reads);
  static constexpr size_t kPointsMax = 400;

 private:
  std::mutex mutex_;
  locality::GhostDistances ghosts_;
};

}  // namespace spw::runtime
