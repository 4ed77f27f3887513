// What a run does, as monitoring systems read it: OpenMetrics 1.0, or the older text of Prometheus, version 0.0.4
// (docs/METRICS.md lists every metric).
//
// Names: spillway_run_* is of all processes together and goes on when one of them ends; spillway_process_* is of
// one, with the labels pid and program. Units are bytes and seconds. A counter of src/telemetry/counters.inc is
// spillway_process_NAME_total; one in nanoseconds becomes seconds, and "bytes" moves to the end of the name.
// Threads: pure functions of their arguments.
// Limits: kProcessesMax processes are told one by one, the first ones, so that who is told does not change from one
// look to the next; a label has kLabelBytesMax bytes at most.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/closing_line.h"
#include "telemetry/counters.h"
#include "telemetry/latencies.h"

namespace spw::tool {

inline constexpr size_t kProcessesMax = 64;
inline constexpr size_t kLabelBytesMax = 256;

// One process, now. Of a number that is 0 there is no metric, other than of the counters: it is not known.
struct ProcessNow {
  uint64_t process = 0;
  std::string program;  // as it was started
  std::string engine;
  std::string store;
  telemetry::Totals totals{};
  telemetry::Latencies misses;
  uint64_t block_bytes = 0;
  uint64_t frames = 0;
  uint64_t memory_cap_bytes = 0;
  uint64_t resident_bytes = 0;  // memory that it holds
};

// All of them. The totals include those that have ended.
struct RunNow {
  std::string version;          // of Spillway; "": not told
  uint64_t cap_bytes = 0;       // 0: not known, as below
  uint64_t resident_bytes = 0;  // memory that they hold together
  uint64_t needs_bytes = 0;     // what they would hold without Spillway, about
  telemetry::RunTotals totals;  // of the whole run
  std::vector<ProcessNow>
      processes;  // those that run, the oldest first; of several with one pid and program the first
};

// OpenMetrics 1.0, up to "# EOF".
std::string metrics_text(const RunNow& run);

// The same as Prometheus 0.0.4 reads it. `openmetrics`: of metrics_text().
std::string prometheus_text(const std::string& openmetrics);

inline constexpr const char* kOpenMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";
inline constexpr const char* kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";

// Whether a client that sends this header Accept wants OpenMetrics. "": it sends none.
bool asks_for_openmetrics(std::string_view accept);

}  // namespace spw::tool
