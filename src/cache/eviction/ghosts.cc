#include "cache/eviction/ghosts.h"

#include <algorithm>

namespace spw::cache {

void Ghosts::left(Fingerprint block) {
  if (++departures_ == 0) departures_ = 1;
  Entry* set = set_of(block);
  Entry* oldest =
      std::max_element(set, set + kWays, [this](const Entry& a, const Entry& b) { return age(a) < age(b); });
  *oldest = {block, departures_};
}

bool Ghosts::came_back(Fingerprint block) {
  Entry* set = set_of(block);
  for (Entry* entry = set; entry < set + kWays; ++entry) {
    if (entry->block != block || age(*entry) >= capacity_) continue;
    *entry = {};
    return true;
  }
  return false;
}

}  // namespace spw::cache
