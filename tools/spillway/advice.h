// What `spillway advise` concludes from a report with a curve: how long
// a run would take with more memory, and how much is worth having.
//
// Threads: any, each with CodeNames of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "code_names.h"
#include "telemetry/report.h"

namespace spw::tool {

// A run, by its report.
struct Advised {
  telemetry::Facts facts;
  double waited_seconds = 0;  // by all threads, for blocks to be read

  uint64_t reads_at(uint64_t memory_bytes) const { return reads_at(facts.curve, memory_bytes); }
  static uint64_t reads_at(const std::vector<telemetry::CurvePoint>& curve, uint64_t memory_bytes);
  // Processor time stays, and so does time in which nothing happened; waiting shrinks with the number of blocks read;
  // as many threads go on at once as did:
  //     wall * (1 - waited * (1 - reads(memory) / reads) / max(processor + waited, wall))
  double seconds_at(uint64_t memory_bytes) const;
  // Likewise, had all waiting been `share` of what it was.
  double seconds_with(double share) const;
  // Beyond this much memory nothing gets better.
  uint64_t memory_useful_bytes() const { return facts.curve.back().memory_bytes; }
  // The least memory whose time is within `share` of the best one.
  uint64_t memory_within(double share) const;
};

// A table, a picture of the curve, and a recommendation.
std::string advice_text(const Advised& run, CodeNames& names);
std::string advice_json(const Advised& run, CodeNames& names);
// Estimated time over memory, as an image.
std::string advice_svg(const Advised& run);

}  // namespace spw::tool
