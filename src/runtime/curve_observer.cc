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

void CurveObserver::ended(BlockId first, uint64_t count) {
  if (count == 1 && !ghosts_.samples(first.value)) return;
  std::lock_guard lock(mutex_);
  ghosts_.forget(first.value, count);
}

std::vector<telemetry::CurvePoint> CurveObserver::curve(
    uint64_t memory_bytes, uint64_t reads, const std::function<uint64_t(uint64_t frames)>& memory_for) {
  std::lock_guard lock(mutex_);
  const auto saved = ghosts_.saved();
  std::vector<telemetry::CurvePoint> points = {{memory_bytes, reads}};
  const size_t step = saved.size() / kPointsMax + 1;
  for (size_t i = 0; i < saved.size(); ++i) {
    if (i % step != 0 && i + 1 != saved.size()) continue;
    points.push_back({memory_bytes + memory_for(static_cast<uint64_t>(saved[i].extra)),
                      reads - std::min(reads, static_cast<uint64_t>(saved[i].misses))});
  }
  return points;
}

}  // namespace spw::runtime
