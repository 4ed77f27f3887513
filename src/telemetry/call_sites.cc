#include "telemetry/call_sites.h"

namespace spw::telemetry {

void CallSites::note(uintptr_t instruction) {
  const size_t home = static_cast<size_t>((instruction * uint64_t{0x9E3779B97F4A7C15u}) >> 52);
  static_assert(kSitesMax == size_t{1} << 12);
  for (size_t step = 0; step < kSitesMax; ++step) {
    Slot& slot = slots_[(home + step) % kSitesMax];
    uintptr_t seen = slot.instruction.load_relaxed();
    while (seen == 0 && !slot.instruction.cas_weak_acquire(seen, instruction)) {
    }
    if (seen != 0 && seen != instruction) continue;
    slot.count.fetch_add_relaxed(1);
    return;
  }
  others_.count.fetch_add_relaxed(1);
}

std::vector<CallSites::Site> CallSites::all() const {
  std::vector<Site> sites;
  for (const Slot& slot : slots_)
    if (const uint64_t count = slot.count.load_relaxed())
      sites.push_back({slot.instruction.load_relaxed(), count});
  if (const uint64_t count = others_.count.load_relaxed()) sites.push_back({0, count});
  return sites;
}

}  // namespace spw::telemetry
