// Writes what hint_plan.h found of a loop's streams: cuts the loop into chunks, or puts tests at the entry of a piece
// into it and one before it; and announces long streams to the runtime before the loop.
//
// Order: addresses of all loops first, then all cuts, then the rest. A Loop
// and a CountedLoop know the blocks as they were before any was split.
#pragma once

#include "pass/hints/hint_plan.h"
#include "pass/two_versions.h"

namespace spw::pass {

// Computes before the loop where its streams begin.
void find_first_addresses(PlannedLoop& planned);

// `versions`, if any, learns of it.
void cut_loop(const PlannedLoop& planned, HintWriter& writer, TwoVersions* versions);

// Streams of loops that are not cut, and announcements.
void write_streams(const PlannedLoop& planned, HintWriter& writer);

}  // namespace spw::pass
