#include "process/curve_observer.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>

#include "telemetry/areas.h"

namespace spw::process {

namespace {

using telemetry::AreaReads;
using telemetry::CurvePoint;

constexpr size_t kAreaPointsMax = 24;

std::vector<CurvePoint> curve_from(const std::vector<locality::GhostDistances::Saved>& saved,
                                   size_t points_max, uint64_t memory_bytes, uint64_t reads, double scale,
                                   const CurveObserver::MemoryFor& memory_for) {
  std::vector<CurvePoint> points = {{memory_bytes, reads}};
  const size_t step = saved.size() / points_max + 1;
  for (size_t i = 0; i < saved.size(); ++i) {
    if (i % step != 0 && i + 1 != saved.size()) continue;
    points.push_back({memory_bytes + memory_for(static_cast<uint64_t>(saved[i].extra)),
                      reads - std::min(reads, static_cast<uint64_t>(saved[i].misses * scale))});
  }
  return points;
}

// The file that this code is of, and where in it.
void find_object(uint64_t site, AreaReads* area) {
  Dl_info info;
  if (site == 0 || dladdr(reinterpret_cast<void*>(site), &info) == 0) return;
  area->object = info.dli_fname;
  area->offset = site - reinterpret_cast<uintptr_t>(info.dli_fbase);
}

}  // namespace

CurveObserver::CurveObserver(uint64_t block_bytes, Detail detail)
    : block_bytes_(block_bytes),
      has_places_(detail == Detail::kPlaces),
      ghosts_(has_places_ ? 1 : kSmallRate,
              has_places_ ? locality::GhostDistances::kDataMax : kSmallDataMax) {}

void CurveObserver::left(BlockId block) {
  if (!ghosts_.samples(block.value)) return;
  std::lock_guard lock(mutex_);
  ghosts_.left(block.value);
}

void CurveObserver::came(BlockId block) {
  if (!ghosts_.samples(block.value)) return;
  std::lock_guard lock(mutex_);
  const double weight = 1 / ghosts_.rate();
  bool is_older = false;
  const uint64_t extra = ghosts_.came(block.value, &is_older);
  if (extra != 0 && is_older) recent_.older += weight;
  if (extra != 0 && !is_older) recent_.distances.add(extra * block_bytes_, weight);
  if (!has_places_) return;
  Place& place = place_of(block);
  place.reads += weight;
  if (extra != 0) place.distances.add(extra, weight);
}

CurveObserver::Recent CurveObserver::take_recent() {
  std::lock_guard lock(mutex_);
  return std::exchange(recent_, {});
}

void CurveObserver::begin_anew() {
  std::lock_guard lock(mutex_);
  recent_ = {};
  ghosts_.mark();
}

CurveObserver::Place& CurveObserver::place_of(BlockId block) {
  const auto area = telemetry::area_at(block.value * block_bytes_);
  Key key = area ? Key{area->name.empty() ? area->site : 0, area->name} : Key{};
  if (places_.size() >= kPlacesMax && !places_.contains(key)) key = {};
  Place& place = places_[key];
  if (area) place.bytes = std::max(place.bytes, area->bytes);
  return place;
}

void CurveObserver::ended(BlockId first, uint64_t count) {
  if (count == 1 && !ghosts_.samples(first.value)) return;
  std::lock_guard lock(mutex_);
  ghosts_.forget(first.value, count);
}

std::vector<CurvePoint> CurveObserver::curve(uint64_t memory_bytes, uint64_t reads,
                                             const MemoryFor& memory_for) {
  std::lock_guard lock(mutex_);
  return curve_from(ghosts_.saved(), has_places_ ? kPointsMax : kPointsOfSampleMax, memory_bytes, reads, 1,
                    memory_for);
}

std::vector<AreaReads> CurveObserver::areas(uint64_t memory_bytes, uint64_t reads,
                                            const MemoryFor& memory_for) {
  std::lock_guard lock(mutex_);
  double sampled = 0;
  for (const auto& [key, place] : places_) sampled += place.reads;
  const double scale = sampled > 0 ? static_cast<double>(reads) / sampled : 0;
  std::vector<AreaReads> areas;
  for (const auto& [key, place] : places_) {
    AreaReads area;
    area.name = key.second;
    area.bytes = place.bytes;
    find_object(key.first, &area);
    area.curve = curve_from(locality::GhostDistances::saved_of(place.distances), kAreaPointsMax, memory_bytes,
                            static_cast<uint64_t>(place.reads * scale), scale, memory_for);
    areas.push_back(std::move(area));
  }
  std::sort(areas.begin(), areas.end(), [](const AreaReads& a, const AreaReads& b) {
    return a.curve.front().reads > b.curve.front().reads;
  });
  return areas;
}

}  // namespace spw::process
