// UMAP_ environment variables: their values, their defaults, and the Spillway options they stand for.
//
//     UMAP_PAGESIZE                     bytes     block           a power of two from 4 KiB to 2 MiB
//     UMAP_BUFSIZE                      pages     memory          pages * page size; 8 MiB at least
//     UMAP_PAGE_FILLERS                 threads   fillers
//     UMAP_PAGE_EVICTORS                threads   evictors
//     UMAP_EVICT_HIGH_WATER_THRESHOLD   percent   low_watermark   eviction begins when so much of the buffer is full, ours when
//     UMAP_EVICT_LOW_WATER_THRESHOLD    percent   high_watermark  the rest is free; it ends at the other. 50 to 100
//     UMAP_READ_AHEAD                   pages     readahead
//     UMAP_MAX_FAULT_EVENTS, UMAP_MONITOR_FREQ    no such thing here; the first is only reported
//
// A value that cannot be is replaced by the default, with a warning of one line. Options that are set as SPILLWAY_ variables win.
// Threads: pure functions.
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
  uint64_t read_ahead_pages = 64;
  uint64_t max_fault_events = 256;
  int high_water_percent = 90;
  int low_water_percent = 70;
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, std::string>> options;  // "block" -> "65536": of what was set
};

// From "NAME=value" strings; a nullptr ends them.
Config read_config(const char* const* environment);

// This process's, read at the first call.
const Config& config();
// Told with the others, when the first mapping is made. Before that, by one thread.
void config_warning(std::string line);

}  // namespace Umap
