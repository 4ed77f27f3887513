// A run of two processes, for the tests of --metrics: numbers that are all known, and a name that needs care.
#pragma once

#include <string>

#include "metrics_text.h"

namespace spw::tool {

inline constexpr const char* kAwkwardName = "./my \"best\" prog\\v2\n";

inline ProcessNow some_process(uint64_t pid, std::string program) {
  ProcessNow process;
  process.process = pid;
  process.program = std::move(program);
  process.engine = "mapped";
  process.store = "spill:/mnt/nvme (io_uring, O_DIRECT)";
  // No two are equal, and none is 0: each counter's own number shows which one it is.
  for (size_t i = 0; i < process.totals.size(); ++i) process.totals[i] = pid * 1000 + i;
  process.misses.counts[telemetry::latency_class(100)] = 5;
  process.misses.counts[telemetry::latency_class(8200)] = 20;
  process.misses.counts[telemetry::latency_class(uint64_t{1} << 36)] = 1;
  process.misses.worst_ns = 70'000'000'000;
  process.block_bytes = 4096;
  process.frames = 1000;
  process.memory_cap_bytes = uint64_t{4} << 30;
  process.resident_bytes = uint64_t{3} << 30;
  return process;
}

inline RunNow some_run() {
  RunNow run;
  run.version = "0.2.0";
  run.cap_bytes = uint64_t{4} << 30;
  run.resident_bytes = (uint64_t{4} << 30) - 4096;
  run.needs_bytes = uint64_t{17} << 30;
  run.totals = {13'000'000'000, 41'000'000'000, 3'100'000, 41'500'000'000, 59'000'000'000};
  run.processes = {some_process(41, "sort"), some_process(42, kAwkwardName)};
  return run;
}

}  // namespace spw::tool
