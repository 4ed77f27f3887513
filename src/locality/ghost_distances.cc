#include "locality/ghost_distances.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace spw::locality {

namespace {

// Times there are between two renumberings, for each ghost there may be.
constexpr uint64_t kTimesAGhost = 4;

}  // namespace

GhostDistances::GhostDistances(double rate, uint64_t data_max)
    : data_max_(data_max), sample_(rate), order_(kTimesAGhost * data_max) {}

// When it left; 0: it is no ghost.
uint64_t GhostDistances::take(Datum datum) {
  const uint64_t time = left_at_.take(datum);
  if (time == 0) return 0;
  order_.unmark(time);
  --ghosts_;
  return time;
}

void GhostDistances::left(Datum datum) {
  take(datum);
  if (ghosts_ == data_max_ || now_ == order_.times()) make_room();
  if (!samples(datum)) return;
  left_at_.exchange(datum, ++now_);
  order_.mark(now_);
  ++ghosts_;
}

uint64_t GhostDistances::came(Datum datum, bool* is_older) {
  const uint64_t time = take(datum);
  if (is_older != nullptr) *is_older = time <= mark_;
  if (time == 0) return 0;
  const double weight = 1 / rate();
  const uint64_t newer = ghosts_ - order_.up_to(time);
  const auto extra = static_cast<uint64_t>(std::llround(static_cast<double>(newer + 1) * weight));
  distances_.add(extra, weight);
  return extra;
}

void GhostDistances::forget(Datum first, uint64_t count) {
  if (count <= left_at_.size()) {
    for (Datum datum = first; datum < first + count; ++datum) take(datum);
    return;
  }
  std::vector<Datum> gone;
  left_at_.for_each([&](const LastAccess::Entry& entry) {
    if (entry.datum - first < count) gone.push_back(entry.datum);
  });
  for (const Datum datum : gone) take(datum);
}

// Fewer ghosts, if there are many, and times from 1 on again.
void GhostDistances::make_room() {
  std::vector<LastAccess::Entry> kept;
  left_at_.for_each([&](const LastAccess::Entry& entry) {
    if (entry.time != 0) kept.push_back(entry);
  });
  while (kept.size() >= data_max_ && sample_.can_halve()) {
    sample_.halve();
    std::erase_if(kept, [this](const LastAccess::Entry& entry) { return !samples(entry.datum); });
  }
  if (kept.size() >= data_max_) kept.clear();
  std::sort(kept.begin(), kept.end(),
            [](const LastAccess::Entry& a, const LastAccess::Entry& b) { return a.time < b.time; });
  left_at_ = LastAccess();
  order_ = OrderTree(order_.times());
  now_ = 0;
  uint64_t older = 0;
  for (const LastAccess::Entry& entry : kept) {
    older += entry.time <= mark_;
    left_at_.exchange(entry.datum, ++now_);
    order_.mark(now_);
  }
  mark_ = older;
  ghosts_ = kept.size();
}

std::vector<GhostDistances::Saved> GhostDistances::saved() const { return saved_of(distances_); }

std::vector<GhostDistances::Saved> GhostDistances::saved_of(const GapHistogram& distances) {
  std::vector<Saved> found;
  double misses = 0;
  for (const GapHistogram::Bin& bin : distances.bins()) {
    if (bin.count == 0) continue;
    misses += bin.count;
    found.push_back({bin.sum / bin.count, misses});
  }
  return found;
}

}  // namespace spw::locality
