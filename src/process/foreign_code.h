// Which library and function the faults of foreign code came from, so that a user knows what to recompile.
//
// Threads: any; not in signal handlers. Limits: a static function has
// no name at run time; it goes by its address in the file.
#pragma once

#include <vector>

#include "telemetry/call_sites.h"
#include "telemetry/report.h"

namespace spw::process {

// The functions with most faults first.
std::vector<telemetry::ForeignCode> foreign_code(const telemetry::CallSites& sites);

}  // namespace spw::process
