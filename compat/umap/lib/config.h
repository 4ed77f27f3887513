// UMAP_ environment variables: their values, their defaults, and the Spillway options they stand for.
//
//     UMAP_PAGESIZE                     bytes     block           a multiple of 4 KiB, raised to a power of two, 2 MiB at most
//     UMAP_BUFSIZE                      pages     memory          pages * page size; 8 MiB at least
//     UMAP_PAGE_FILLERS                 threads   fillers
//     UMAP_PAGE_EVICTORS                threads   evictors
//     UMAP_EVICT_HIGH_WATER_THRESHOLD   percent   low_watermark   eviction begins when so much of the buffer is full, ours when
//     UMAP_EVICT_LOW_WATER_THRESHOLD    percent   high_watermark  the rest is free; it ends at the other. 50 to 100
//     UMAP_READ_AHEAD                   pages     readahead
//     UMAP_MAX_FAULT_EVENTS, UMAP_MONITOR_FREQ    no such thing here
//
// A value that cannot be is replaced by the default, with a warning
// of one line. Options that are set as SPILLWAY_ variables win.
// Invariant: the numbers of a Config are those in force, wherever
// they come from; what no variable sets is Spillway's default.
// Threads: pure functions, where nothing else is said.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace Umap {

struct Config {
  uint64_t page_bytes = 4096;
  uint64_t buffer_pages = 0;  // 0: as much as Spillway takes by itself
  uint64_t fillers = 16;
  uint64_t evictors = 1;
  uint64_t read_ahead_pages = 256;
  int high_water_percent = 99;
  int low_water_percent = 98;
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, std::string>> options;  // "block" -> "65536": to be set
};

// Page faults that a thread of the runtime takes at a time (platform/userfault.cc).
inline constexpr uint64_t kFaultEventsMax = 64;

// From "NAME=value" strings; a nullptr ends them.
Config read_config(const char* const* environment);

// This process's, read at the first call.
const Config& config();
// An option of config().options that the runtime did not take: its value is the default again, and the line is told
// with the other warnings, when the first mapping is made. Before that, by one thread.
void option_not_used(const std::string& option, std::string line);

}  // namespace Umap
