// Faults whose blocks are being read: what a poller of the fault server has begun (fault_server.h) and ends when the read is done.
//
// A missing fault on a block that this poller reads already needs nothing more: the page that is put in place wakes all who wait for it, and who
// waits for another right to it faults again.
// Threads: a poller's. Limits: as many as its cache::Fills has room for.
#include "front/mapped/begun_faults.h"

#include "base/check.h"
#include "base/units.h"
#include "telemetry/counters.h"

namespace spw::front {

using telemetry::count;
using telemetry::Counter;

MappedEngine::BegunFaults::BegunFaults(MappedEngine& engine, cache::Fills& fills)
    : engine_(engine), fills_(fills), begun_(engine.cache_->room_for_fills(fills)) {
  for (size_t i = begun_.size(); i > 0; --i) idle_.push_back(i - 1);
}

// While who faulted sleeps, so that it finds its own fault counted. Whether there is more to do.
bool MappedEngine::BegunFaults::is_rightful(const platform::FaultEvent& event) {
  if (!engine_.is_watching()) engine_.watch();  // waits for who is about it
  if (engine_.refuse_wrong(event)) return false;
  count(event.is_protected ? Counter::protect_faults : Counter::missing_faults);
  return true;
}

void MappedEngine::BegunFaults::serve(const platform::FaultEvent& event) {
  if (is_rightful(event)) engine_.serve(event);
}

bool MappedEngine::BegunFaults::begin(const platform::FaultEvent& event) {
  if (!is_rightful(event)) return true;
  FaultClient& fault_client = engine_.take_fault_client(event.thread);
  const size_t slot = idle_.back();
  Wanted& wanted = begun_[slot];
  wanted = engine_.wanted_by(event);
  cache::Pin pin;
  Status status;
  const cache::Begun begun = engine_.cache_->begin_pin(*fault_client.client, fills_, wanted.block,
                                                       wanted.access, slot, &pin, &status);
  switch (begun) {
    case cache::Begun::kStarted:
      idle_.pop_back();
      wanted.is_begun = true;
      break;
    case cache::Begun::kPinned:
      engine_.end_fault(*fault_client.client, event, wanted, pin);
      break;
    case cache::Begun::kFailed:
      engine_.refuse_freed(event);
      break;
    case cache::Begun::kWouldWait:
      if (pin.was_miss) {
        count(Counter::fault_misses);
        engine_.after_miss(*fault_client.client, wanted.block);
      }
      break;
  }
  fault_client.busy.store_release(false);
  return begun != cache::Begun::kWouldWait || is_begun(wanted.block);
}

bool MappedEngine::BegunFaults::is_begun(BlockId block) const {
  return std::ranges::any_of(begun_, [&](const Wanted& w) { return w.is_begun && w.block == block; });
}

size_t MappedEngine::BegunFaults::end_some() {
  if (in_flight() == 0) return 0;
  cache::EndedPin ended[kEndedAtOnce];
  FaultClient& fault_client = engine_.take_fault_client(0);
  const size_t ended_count = engine_.cache_->end_pins(*fault_client.client, fills_, ended);
  for (const cache::EndedPin& end : std::span(ended).first(ended_count)) {
    Wanted& wanted = begun_[end.tag];
    wanted.is_begun = false;
    idle_.push_back(end.tag);
    if (end.status) {
      engine_.end_fault(*fault_client.client, wanted.event, wanted, end.pin);
    } else {
      engine_.refuse_freed(wanted.event);
      // Others may wait for the block, too.
      engine_.faults_.wake(engine_.frames_->address_of(wanted.block),
                           uint64_t{1} << engine_.options_.block_shift);
    }
  }
  fault_client.busy.store_release(false);
  return ended_count;
}

}  // namespace spw::front
