// Faults whose blocks are being read: what a poller of the fault
// server has begun (fault_server.h) and ends when the read is done.
//
// A missing fault on a block that this poller reads already needs nothing more: the page that is put in place wakes all
// who wait for it, and who waits for another right to it faults again.
// Threads: a poller's. Limits: as many as its cache::Fills has room for.
#include "access/mapped/begun_faults.h"

#include "base/check.h"
#include "base/units.h"
#include "telemetry/counters.h"

namespace spw::access {

using telemetry::count;
using telemetry::Counter;

MappedEngine::BegunFaults::BegunFaults(MappedEngine& engine, cache::Fills& fills)
    : engine_(engine), fills_(fills), begun_(engine.cache_->room_for_fills(fills)) {
  for (size_t i = begun_.size(); i > 0; --i) idle_.push_back(i - 1);
}

// While who faulted sleeps, so that it finds its own fault counted.
// False: it is to be refused, or memory is not watched yet.
bool MappedEngine::BegunFaults::is_rightful(const platform::FaultEvent& event) {
  const bool is_watching = engine_.is_watching();
  if (is_watching && !engine_.may_access(event.address, event.is_store)) return false;
  count(event.is_protected ? Counter::protect_faults : Counter::missing_faults);
  return is_watching;
}

bool MappedEngine::BegunFaults::begin(const platform::FaultEvent& event) { return take_on(event, &fills_); }

bool MappedEngine::BegunFaults::serve(const platform::FaultEvent& event) { return take_on(event, nullptr); }

// `fills`: where its read goes; nullptr: it is done here and now.
bool MappedEngine::BegunFaults::take_on(const platform::FaultEvent& event, cache::Fills* fills) {
  if (!is_rightful(event)) return false;
  if (idle_.empty()) return is_begun(engine_.block_of(event.address));
  FaultClient& fault_client = engine_.take_fault_client(event.thread);
  cache::Client& client = *fault_client.client;
  const size_t slot = idle_.back();
  Wanted& wanted = begun_[slot];
  wanted = engine_.wanted_by(event);
  cache::Pin pin;
  Status status;
  const cache::Begun begun =
      fills ? engine_.cache_->begin_pin(client, *fills, wanted.block, wanted.access, slot, &pin, &status)
            : engine_.cache_->try_pin(client, wanted.block, wanted.access, &pin, &status);
  switch (begun) {
    case cache::Begun::kStarted:
      idle_.pop_back();
      wanted.is_begun = true;
      break;
    case cache::Begun::kPinned:
      engine_.end_fault(client, event, wanted, pin, Waits::kNever);
      break;
    case cache::Begun::kFailed:
      break;  // it was freed meanwhile: who may wait finds the same, and refuses it
    case cache::Begun::kWouldWait:
      if (pin.was_miss) {
        count(Counter::fault_misses);
        engine_.after_miss(client, wanted.block, Waits::kNever);
      }
      break;
  }
  fault_client.busy.store_release(false);
  const bool is_taken = begun == cache::Begun::kStarted || begun == cache::Begun::kPinned;
  return is_taken || is_begun(wanted.block);
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
      engine_.end_fault(*fault_client.client, wanted.event, wanted, end.pin, Waits::kNever);
    } else {
      // All who wait for the block fault again, and who serves that finds out what is to be done.
      engine_.faults_.wake(engine_.frames_->address_of(wanted.block),
                           uint64_t{1} << engine_.options_.block_shift);
    }
  }
  fault_client.busy.store_release(false);
  return ended_count;
}

}  // namespace spw::access
