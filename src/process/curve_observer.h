// How many blocks would be read with more memory, from what is evicted and comes back (locality/ghost_distances.h):
// what `spillway advise` asks for. Of everything, and of each place in the program's code that allocates large pieces
// of memory (telemetry/areas.h).
//
// Detail::kCurve is for the line at the end of every run (telemetry/closing_line.h).
// Limits: with a cap that moves the curve is of none of its values. Memory for the sample is had while blocks come and
// go, so a signal handler of the program's that interrupts malloc must not touch managed memory meanwhile. Places
// beyond kPlacesMax are counted together.
// Threads: any. Costs: of blocks that are not in the sample a hash each time they come or leave, of the others a lock,
// a logarithm and a look at all areas.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cache/cache.h"
#include "locality/ghost_distances.h"
#include "telemetry/report.h"

namespace spw::process {

class CurveObserver final : public cache::Observer {
 public:
  enum class Detail : uint8_t {
    kCurve,   // of a small sample, which costs next to nothing
    kPlaces,  // and of each place
  };
  CurveObserver(uint64_t block_bytes, Detail detail);

  void left(BlockId block) override;
  void came(BlockId block) override;
  void ended(BlockId first, uint64_t count) override;

  // From `memory_bytes`, with which `reads` blocks were read, upwards:
  // about kPointsMax points. memory_for(n): what n more frames take.
  using MemoryFor = std::function<uint64_t(uint64_t frames)>;
  std::vector<telemetry::CurvePoint> curve(uint64_t memory_bytes, uint64_t reads,
                                           const MemoryFor& memory_for);
  // The same for places, of which the sample says how many of the reads were theirs.
  std::vector<telemetry::AreaReads> areas(uint64_t memory_bytes, uint64_t reads, const MemoryFor& memory_for);
  // By how many bytes more of memory those that came back since the last call would not have left, of all of which this
  // is a sample. Of those that left before begin_anew() only how many: memory had another size.
  struct Recent {
    locality::GapHistogram distances;
    double older = 0;
  };
  Recent take_recent();
  void begin_anew();
  static constexpr size_t kPointsMax = 400;
  static constexpr size_t kPointsOfSampleMax = 24;  // each asks for a plan of memory some twenty times
  static constexpr size_t kPlacesMax = 64;

 private:
  using Key = std::pair<uint64_t, std::string>;  // where in the code, name of a file
  struct Place {
    uint64_t bytes = 0;
    double reads = 0;
    locality::GapHistogram distances;
  };
  Place& place_of(BlockId block);

  static constexpr double kSmallRate = 1.0 / 64;
  static constexpr uint64_t kSmallDataMax = 1024;

  const uint64_t block_bytes_;
  const bool has_places_;
  std::mutex mutex_;
  locality::GhostDistances ghosts_;
  Recent recent_;
  std::map<Key, Place> places_;
};

}  // namespace spw::process
