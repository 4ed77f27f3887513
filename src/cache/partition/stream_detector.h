// Finds sequential and strided streams in one client's misses and says what to read ahead.
//
// A stream is taken as such at its second neighbouring miss (stride +1 or -1) or at its third equally spaced one. From
// then on a window is kept read ahead of it: kFirstWindow blocks, or as many as come with a miss, doubled each time up
// to window_max. The next window is asked for when half of the last one has been used, which the first uses of blocks
// read ahead tell (on_ahead_use), so a stream that keeps up never misses. A miss inside what should have been read
// ahead halves the window: memory is too short for it. So does one far behind its end, where a random miss may come to
// lie.
//
// Objects of two blocks, which are used at random, look like beginnings of streams, and those of three blocks and a
// half like streams of stride 4. So more neighbouring misses, or equal strides, are asked for when most streams that
// were taken as such did not go on (score_): up to kNeighboursMax, until some do again.
//
// Strides of up to dense_stride_max blocks are read with what lies in between: one request instead of one for each
// block, and mostly what is in between is only there already for the moment, or another stream's.
//
// Where a miss brings neighbours along (fault_around.h), the next miss of a sequential stream is next to what came,
// which the next piece may overlap; only misses that bring nothing along are told to be equally spaced.
//
// Threads: one client's. Cost: a few compares a miss, nothing a hit.
// Limits: kStreams streams at a time, the least recently used is forgotten; strides up to kStrideMax blocks.
#pragma once

#include <cstdint>

#include "base/ids.h"

namespace spw::cache {

// Read block first, first + stride, ... (count of them). count = 0: nothing to do.
struct ReadPlan {
  BlockId first;
  int64_t stride = 1;
  uint32_t count = 0;
  // Blocks that were asked for and that the stream has passed by without a use, so that none is to be expected.
  BlockId skipped_first{};
  uint32_t skipped = 0;
};

class StreamDetector {
 public:
  explicit StreamDetector(uint32_t window_max = 0, int64_t dense_stride_max = 1)
      : window_max_(window_max), dense_stride_max_(dense_stride_max) {}
  // Blocks `first` to `last`, `block` among them, are brought in for it.
  struct Brought {
    BlockId first, last;
  };
  ReadPlan on_miss(Brought brought, BlockId block);
  ReadPlan on_miss(BlockId block) { return on_miss({block, block}, block); }
  // `uses`: of so many blocks of the stream, this one the last.
  ReadPlan on_ahead_use(BlockId block, uint32_t uses = 1);
  // Only the first `done` blocks of the plan could be asked for: its stream asks for the others again when it comes
  // nearer, but not for each block by itself that its uses make room for.
  void fell_short(const ReadPlan& plan, uint32_t done);

 private:
  static constexpr uint32_t kStreams = 8;
  static constexpr uint32_t kFirstWindow = 4;
  static constexpr int64_t kStrideMax = 256;
  static constexpr uint32_t kPatience = 16;  // uses after a plan fell short
  static constexpr int64_t kGapMax = 8;  // steps behind a window's end that one misses who leaves some out
  static constexpr uint32_t kNeighboursMin = 2, kNeighboursMax = 8;  // misses
  // A quarter of the streams has to go on.
  static constexpr int kWentOn = 3, kEnded = -1, kScoreMin = -24, kScoreMax = 8, kScorePerNeighbour = 4;

  struct Stream {
    int64_t last = INT64_MIN / 2;                       // the block that was used last
    int64_t low = INT64_MIN / 2, high = INT64_MIN / 2;  // the piece that came with the last miss
    int64_t stride = 0;                                 // 0: not known yet
    int64_t frontier = 0;                               // the last block asked for, if window > 0
    uint32_t window = 0;
    uint32_t patience =
        0;  // so many uses more before it asks again, unless it comes to the end of what there is
    uint64_t used_at = 0;
    uint32_t neighbours = 0;  // misses, or equal strides, while there is no window
    bool is_new = false;      // has asked for its first window, and has not come to its end

    // Steps from `last` to `block`, or 0 if the stream does not pass there within `steps_max`.
    int64_t steps_to(int64_t block, int64_t steps_max) const;
  };

  struct Piece {
    int64_t low, high;
    bool is_block() const { return low == high; }
  };
  ReadPlan go_on(Stream& stream, int64_t block, uint32_t first_window, uint32_t uses = 1);
  ReadPlan extend(Stream& stream, int64_t block, uint32_t first_window, uint32_t uses);
  void make_dense(Stream& stream) const;
  ReadPlan begin(Stream& stream, bool is_near, int64_t block, Piece piece);
  ReadPlan wait_for_more(Stream& stream, int64_t block);
  uint32_t neighbours_needed() const;
  void note_end(Stream& stream, int counts);

  uint32_t window_max_;
  int64_t dense_stride_max_;
  uint64_t clock_ = 0;
  int score_ = 0;  // of the streams that have ended, and of those that went on
  Stream streams_[kStreams];
};

}  // namespace spw::cache
