// The report at the end of a run, for people and as JSON (docs/STATS.md holds the schema).
//
// A level answers some lookups (hits) and hands the others (misses) to the level below it: direct SATC, private SATC,
// shared cache, store. Direct hits are the program's own instructions and are known only to code compiled with
// -fspillway-count; otherwise that level's hits and ratio are "not counted" and null.
// Threads: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/counters.h"

namespace spw::telemetry {

inline constexpr int kReportSchema = 1;

// Code that was not recompiled and touched managed memory, one fault at a time.
struct ForeignCode {
  std::string library;
  std::string function;
  uint64_t faults = 0;
};

// With so much memory so many blocks would have been read.
struct CurvePoint {
  uint64_t memory_bytes = 0;
  uint64_t reads = 0;
};

// Blocks of some large pieces of memory that were read, and what more memory would save: of all that were allocated at
// one place in the code, of a mapped file, or of everything else.
struct AreaReads {
  std::string name;               // of the mapped file; else empty
  std::string object;             // program or library that allocated it; empty: neither is known
  uint64_t offset = 0;            // where in its code, counted from where it is loaded
  uint64_t bytes = 0;             // the most that one of them had
  std::vector<CurvePoint> curve;  // as Facts::curve
};

// Of pages that were written to the store, a sample: what they came to when they were compressed.
struct PageCompression {
  uint64_t tried = 0;     // 0: nobody looked
  uint64_t fitted = 0;    // that came to little enough
  double kept_bytes = 0;  // what one of these takes in compressed memory
  double compress_ns = 0, open_ns = 0;
};

// What a report says besides the counters.
struct Facts {
  std::string program;  // as it was started
  uint64_t process = 0;
  std::string engine;
  std::string store;  // Store::describe()
  uint64_t block_bytes = 0;
  uint64_t memory_cap_bytes = 0;
  uint64_t frames = 0;
  uint64_t frames_peak = 0;
  bool watched = true;             // false: all managed memory fitted and was left to the kernel
  std::string faults_by;           // who serves page faults, and why; "": nobody has to
  std::string system_call_faults;  // "served" or "brought in first"
  std::string mapped_reads;        // who serves mapped files that are only read, and why; "": nobody has to
  LatencySummary misses;           // how long they took
  uint64_t metadata_bytes = 0;
  uint64_t native_peak_bytes = 0;       // of memory that is not managed; 0: nobody looked
  uint64_t resident_peak_bytes = 0;     // of the whole process
  uint64_t compressed_share_bytes = 0;  // what compressed pages may take of the cap now
  uint64_t compressed_peak_bytes = 0;   // the most that they took
  PageCompression compression;
  double wall_seconds = 0;
  double processor_seconds = 0;       // of the whole process
  std::vector<CurvePoint> curve;      // memory rising from the cap; empty: not asked for
  std::vector<AreaReads> areas;       // with a curve only; the most reads first
  std::vector<ForeignCode> foreign;   // the most faults first
  std::vector<std::string> warnings;  // that the process wrote to standard error
};

// part / (part + rest); nothing when both are 0.
std::optional<double> hit_ratio(uint64_t hits, uint64_t misses);
// Bytes written to stores for each byte of a block that became dirty; nothing when no block did.
std::optional<double> write_amplification(const Totals& totals);

// "8.2 us (p50), 14.1 us (p99), 31.0 us (p99.9), 1210.0 us at worst"; "-" where there were none.
std::string latency_text(const LatencySummary& misses);
std::string report_text(const Facts& facts, const Totals& totals);
std::string report_json(const Facts& facts, const Totals& totals);

// `pattern` with each %p replaced by the process id: the name of the file a report goes to.
std::string report_file_name(const std::string& pattern, uint64_t process);

}  // namespace spw::telemetry
