#include "access/mapped/hint_switch.h"

namespace spw::access {

namespace {

bool at_rate(uint64_t trips, uint64_t elapsed_ns, uint64_t rate) {
  return static_cast<double>(trips) * 1e9 >= static_cast<double>(rate) * static_cast<double>(elapsed_ns);
}

}  // namespace

void HintSwitch::look(uint64_t now_ns) {
  if (since_ns_ == 0)
    return begin(now_ns);  // the first look: there is no time that trips could be held against
  trips_since_ += trips_.exchange_relaxed(0);
  const uint64_t elapsed_ns = now_ns - since_ns_;
  if (!access::VersionSwitch::is_set()) {
    if (trips_since_ > 0 && at_rate(trips_since_, elapsed_ns, kOnRate)) access::VersionSwitch::set(true);
    begin(now_ns);
    return;
  }
  if (elapsed_ns < kCalmNs) return;
  if (!at_rate(trips_since_, elapsed_ns, kOffRate)) {
    was_off_.store_relaxed(true);
    access::VersionSwitch::set(false);
  }
  begin(now_ns);
}

}  // namespace spw::access
