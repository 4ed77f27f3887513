#include "front/mapped/hint_switch.h"

namespace spw::front {

bool HintSwitch::is_idle() const { return trips_.load_relaxed() == 0 && !HintTable::is_on(); }

void HintSwitch::look(uint64_t blocks_in) {
  const uint64_t trips = trips_.exchange_relaxed(0);
  const uint64_t blocks = blocks_in - blocks_seen_;
  blocks_seen_ = blocks_in;
  if (!HintTable::is_on()) {
    if (trips < kTripsMin || trips * kOnShare < blocks) return;
    HintTable::switch_on(true);
    trips_since_ = blocks_since_ = looks_since_ = 0;
    return;
  }
  trips_since_ += trips;
  blocks_since_ += blocks;
  if (++looks_since_ < kCalmLooks) return;
  if (trips_since_ < kTripsMin || trips_since_ * kOffShare < blocks_since_) {
    was_off_.store_relaxed(true);
    HintTable::switch_on(false);
  }
  trips_since_ = blocks_since_ = looks_since_ = 0;
}

}  // namespace spw::front
