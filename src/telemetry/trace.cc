#include "telemetry/trace.h"

#include <cstdio>
#include <cstring>

namespace spw::telemetry {

std::string trace_text(const TraceEntry& entry) {
  const std::string value = std::to_string(entry.value);
  char text[64];
  switch (entry.event) {
    case TraceEvent::kMissed:
      std::snprintf(text, sizeof text, "missed, in %.1f us", static_cast<double>(entry.value) / 1000);
      return text;
    case TraceEvent::kEvicted:
      return "evicted";
    case TraceEvent::kWritten:
      return entry.value == 1 ? "written" : "written, with what follows: " + value + " blocks";
    case TraceEvent::kFailed:
      return std::string("failed: ") + std::strerror(static_cast<int>(entry.value));
    case TraceEvent::kWaits:
      return "waits for a frame";
    case TraceEvent::kLimit:
      return "the limit is " + value + " frames";
    case TraceEvent::kRefused:
      return "access refused";
    case TraceEvent::kWatched:
      return "memory is watched from now on";
    case TraceEvent::kWaited:
      return "waits for a frame no longer";
    case TraceEvent::kNothing:
      break;
  }
  return "event " + std::to_string(static_cast<unsigned>(entry.event)) + ", " + value;
}

void TraceRing::read(uint64_t from, std::vector<TraceEntry>& into) const {
  for (const Slot& slot : slots_) {
    const uint64_t stamp = slot.stamp.load_acquire();
    TraceEntry entry;
    entry.at_ns = slot.at_ns.load_acquire();
    entry.block = slot.block.load_acquire();
    const uint64_t what = slot.what.load_acquire();
    if (stamp == 0 || slot.stamp.load_relaxed() != stamp || stamp - 1 < from) continue;
    entry.event = static_cast<TraceEvent>(what >> 56);
    entry.value = what & kTraceValueMax;
    entry.number = stamp - 1;
    into.push_back(entry);
  }
}

}  // namespace spw::telemetry
