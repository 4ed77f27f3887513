// How often a write-combining cache of each size would have flushed, from the writes that one thread made. (The paper
// on adaptive software caching, section III-B.)
//
// Writes go through the paper's timescale reuse (locality/timescale_reuse.h), sections kept apart. Only, a write to the
// line that was written last is left out of the trace and counted by itself: a cache of any size combines it, and it
// moves nothing in the LRU order, so the caches' flushes are those of the rest. A line is often filled by many stores
// in a row; without them the windows that hold 50 lines are that much shorter, and watching such a store costs nothing.
//
//     flushes at a size / writes = miss ratio of the rest at that size * the rest / writes
//
// The formula holds where windows of any place in the trace look alike (the paper's reuse-window
// hypothesis). Programs have phases, and the mean footprint of a phase that loops over 10 lines and
// one over 30 is that of a loop over 20, which no LRU cache has. So the trace is cut into pieces of
// kPieceChanges, each has a curve of its own, and the curve of all is their mean: that needs windows
// to look alike within a piece only, and makes neither time nor memory depend on how much is watched.
//
// Threads: one at a time. Memory: at most 1.5 MiB, whatever is written.
// Limits: windows of kScaleMax line changes. A program that changes the line kScaleMax times
// within fewer than size_max lines has its larger sizes' flushes taken as those of the
// largest size seen. As the footprint rises ever slower, these are below size_max / kScaleMax
// of the line changes, 0.3 % for 50 lines, and to ignore them costs no more than that.
// Phases of fewer than kPieceChanges are seen as one that is their mean.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "durable/combining/write_combiner.h"
#include "locality/miss_ratio_curve.h"
#include "locality/timescale_reuse.h"

namespace spw::durable {

class LineProfile {
 public:
  static constexpr uint64_t kScaleMax = 16384;  // line changes
  static constexpr uint64_t kPieceChanges =
      16 * kScaleMax;  // so that a piece's curve costs little beside its collection

  // size_max: of the curve, in lines.
  explicit LineProfile(uint32_t size_max) : flushes_(size_t{size_max} + 1) { piece_.emplace(kScaleMax); }

  void written(Line line) {
    ++writes_;
    if (line == newest_) return;
    newest_ = line;
    piece_->access(line);
    if (piece_->accesses() == kPieceChanges) [[unlikely]]
      end_piece();
  }
  void end_section() {
    newest_ = kNoLine;
    piece_->end_section();
  }

  uint64_t writes() const { return writes_; }
  // Flushes a write, at the sizes 1 to size_max.
  locality::MissRatioCurve curve() const;
  uint64_t memory_bytes() const { return piece_->memory_bytes() + flushes_.capacity() * sizeof(double); }

 private:
  void add_piece(std::vector<double>& flushes) const;
  void end_piece();

  uint64_t writes_ = 0;
  Line newest_ = kNoLine;
  std::optional<locality::ReuseCollector> piece_;
  std::vector<double> flushes_;  // [size]: in all pieces that have ended
};

}  // namespace spw::durable
