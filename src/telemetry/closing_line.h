// The line that a run which did not fit in memory ends with: what it cost, and what would have made it cheaper.
//
//   spilled 12.4 GiB, read 41.0 GiB; peak 4.0 of 4.0 GiB; 3.1 M misses, 41 % of the time waiting;
//   try --memory 6G: -60 %
//
// Threads: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "telemetry/report.h"

namespace spw::telemetry {

// What all processes of a run did.
struct RunTotals {
  uint64_t spilled_bytes = 0;  // of blocks of the program's own memory that were written to the store
  uint64_t read_bytes = 0;     // from stores and mapped files
  uint64_t misses = 0;         // blocks that were read because somebody needed them
  uint64_t waited_ns = 0;      // by threads, for blocks to be read
  uint64_t processor_ns = 0;

  RunTotals& operator+=(const RunTotals& more);
  // Each the larger one.
  RunTotals& raise_to(const RunTotals& other);
};
RunTotals run_totals(const Totals& totals, uint64_t block_bytes, uint64_t processor_ns);

// More memory, and the share of the time that it would save; 0: none is worth it, or nobody knows.
struct Advice {
  uint64_t memory_bytes = 0;
  double saves = 0;
};
// `curve` as in Facts, its first point this run. Up to `memory_bytes_most`.
Advice advice_from(const std::vector<CurvePoint>& curve, double waiting_share, uint64_t memory_bytes_most);

struct RunSummary {
  RunTotals totals;
  double wall_seconds = 0;
  uint64_t peak_bytes = 0;  // of the memory that all held at the same time; 0: nobody looked
  uint64_t cap_bytes = 0;
  uint64_t needs_bytes = 0;    // what they would have held without Spillway, about; 0: nobody looked
  uint64_t machine_bytes = 0;  // the most that a program without it could have had here; 0: not known
  Advice advice;
};
// Of a run of several processes more memory is advised only if one of them did nearly all of the reading.
bool is_nearly_all(uint64_t own_read_bytes, uint64_t read_bytes);
// Of the time that threads ran or waited.
double waiting_share(const RunTotals& totals, double wall_seconds);
// Nothing had to leave memory: there is nothing to say.
bool has_spilled(const RunTotals& totals);
// All that a program can have in memory here, with swap space; 0: not known.
uint64_t machine_bytes();
// Of that, what a cap can be raised to.
uint64_t memory_to_advise(uint64_t machine_bytes);
std::string closing_line(const RunSummary& run);

}  // namespace spw::telemetry
