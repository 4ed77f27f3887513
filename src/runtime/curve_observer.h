// How many blocks would be read with more memory, from what is evicted and comes back (locality/ghost_distances.h): what `spillway advise`
// asks for.
//
// Limits: with a cap that moves the curve is of none of its values. Memory for the sample is had while blocks come and go, so a signal handler of
// the program's that interrupts malloc must not touch managed memory meanwhile.
// Threads: any. Costs: of blocks that are not in the sample a hash each time they come or leave, of the others a lock and a logarithm.
#pragma once

#include <functional>
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
  void ended(BlockId first, uint64_t count) override;

  // From `memory_bytes`, with which `reads` blocks were read, upwards: about kPointsMax points. memory_for(n): what n more frames take.
  std::vector<telemetry::CurvePoint> curve(uint64_t memory_bytes, uint64_t reads,
                                           const std::function<uint64_t(uint64_t frames)>& memory_for);
  static constexpr size_t kPointsMax = 400;

 private:
  std::mutex mutex_;
  locality::GhostDistances ghosts_;
};

}  // namespace spw::runtime
