// What compressed memory (--compress) would have been worth to a run, by its curve and by what a sample of its pages
// came to when they were compressed.
//
// Threads: any.
#pragma once

#include <cstdint>

#include "advice.h"

namespace spw::tool {

struct CompressionAdvice {
  bool is_known = false;    // false: too few pages were looked at
  double fits = 0;          // of the pages, those that compress
  double ratio = 0;         // how many of these would take the memory of one, with what is lost around them
  uint64_t pool_bytes = 0;  // the best share of the memory; 0: it would gain nothing
  double seconds = 0;       // what the run would take with it
};

// By the model with which --compress auto chooses its share (locality/compressed_share.h).
CompressionAdvice advise_compression(const Advised& run);

}  // namespace spw::tool
