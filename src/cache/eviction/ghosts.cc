#include "cache/eviction/ghosts.h"

#include <algorithm>

namespace spw::cache {

void Ghosts::left(Fingerprint block) {
  if (++departures_ == 0) departures_ = 1;
  // The oldest one's place. Without branches: which one that is cannot be foretold.
  Entry* set = set_of(block);
  uint64_t oldest = 0;  // age, and what of kWays is left behind it
  for (uint32_t way = 0; way < kWays; ++way)
    oldest = std::max(oldest, uint64_t{age(set[way])} << 32 | (kWays - way));
  set[kWays - static_cast<uint32_t>(oldest)] = {block, departures_};
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
