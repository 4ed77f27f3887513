// How often a write-combining cache of each size would have flushed, from the writes that one thread made. (The paper on adaptive
// software caching, section III-B.)
//
// Writes go through the paper's timescale reuse (locality/timescale_reuse.h), sections kept apart. Only, a write to the line that was
// written last is left out of the trace and counted by itself: a cache of any size combines it, and it moves nothing in the LRU order,
// so the caches' flushes are those of the rest. A line is often filled by many stores in a row; without them the windows that hold 50
// lines are that much shorter, and watching such a store costs nothing.
//
//     flushes at a size / writes = miss ratio of the rest at that size * the rest / writes
//
// Threads: one at a time. Memory: at most 1.5 MiB, whatever is written.
// Limits: windows of kScaleMax line changes. A program that changes the line kScaleMax times within fewer than size_max lines has its
// larger sizes' flushes taken as those of the largest size seen. As the footprint rises ever slower, these are below size_max / kScaleMax,
// 0.3 % of the line changes, and to ignore them costs no more than that.
#pragma once

#include <cstdint>

#include "durable/combining/write_combiner.h"
#include "locality/miss_ratio_curve.h"
#include "locality/timescale_reuse.h"

namespace spw::durable {

class LineProfile {
 public:
  static constexpr uint64_t kScaleMax = 16384;  // line changes

  void written(Line line) {
    ++writes_;
    if (line == newest_) return;
    newest_ = line;
    changes_.access(line);
  }
  void end_section() {
    newest_ = kNoLine;
    changes_.end_section();
  }

  uint64_t writes() const { return writes_; }
  // Flushes a write, at the sizes 1 to size_max.
  locality::MissRatioCurve curve(uint32_t size_max) const;
  uint64_t memory_bytes() const { return changes_.memory_bytes(); }

 private:
  uint64_t writes_ = 0;
  Line newest_ = kNoLine;
  locality::ReuseCollector changes_{kScaleMax};
};

}  // namespace spw::durable
