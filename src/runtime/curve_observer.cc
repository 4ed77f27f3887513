#include "runtime/curve_observer.h"

#include <algorithm>

namespace spw::runtime {

void CurveObserver::left(BlockId block) {
  if (!ghosts_.samples(block.value)) return;
  std::lock_guard lock(mutex_);
  ghosts_.left(block.value);
}

void CurveObserver::came(BlockId block) {
  if (!ghosts_.samples(block.value)) return;
  std::lock_guard lock(mutex_);
  ghosts_.came(block.value);
}

void CurveObserver::ended(BlockId block) {
  if (!ghosts_.samples(block.value)) return;
  std::lock_guard lock(mutex_);
  ghosts_.forget(block.value);
}

std::vector<telemetry::CurvePoint> CurveObserver::curve(uint64_t memory_bytes, uint64_t block_bytes, uint64_t reads) {
  std::lock_guard lock(mutex_);
  const auto saved = ghosts_.saved();
  std::vector<telemetry::CurvePoint> points = {{memory_bytes, reads}};
  const size_t step = saved.size() / kPointsMax + 1;
  for (size_t i = 0; i < saved.size(); ++i) {
    if (i % step != 0 && i + 1 != saved.size()) continue;
    const auto more = static_cast<uint64_t>(saved[i].extra * static_cast<double>(block_bytes));
    points.push_back({memory_bytes + more, reads - std::min(reads, static_cast<uint64_t>(saved[i].misses))});
  }
  return points;
}

}  // namespace spw::runtime
