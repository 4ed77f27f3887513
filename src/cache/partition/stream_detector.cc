#include "cache/partition/stream_detector.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "cache/partition_map.h"

namespace spw::cache {

int64_t StreamDetector::Stream::steps_to(int64_t block, int64_t steps_max) const {
  if (stride == 0) return 0;
  int64_t distance = block - last;
  if (distance == stride) return 1;
  int64_t steps = distance / stride;
  return steps > 0 && steps <= steps_max && steps * stride == distance ? steps : 0;
}

namespace {

// Windows of neighbours end where a group ends, as far as that costs them no more than half, so that each later request
// is a whole group: one partition, one large transfer.
int64_t end_at_group(int64_t frontier, int64_t stride, int64_t count) {
  constexpr auto kGroup = static_cast<int64_t>(kGroupBlocks);
  if (stride != 1 && stride != -1) return count;
  int64_t beyond =
      stride == 1 ? (frontier + count + 1) % kGroup : (kGroup - (frontier - count) % kGroup) % kGroup;
  return 2 * beyond <= count ? count - beyond : count;
}

}  // namespace

// The stream has come to `block`: asks for the next window if half of the last one is used.
ReadPlan StreamDetector::extend(Stream& stream, int64_t block, uint32_t first_window, uint32_t uses) {
  stream.last = block;
  stream.used_at = ++clock_;
  int64_t left = stream.window == 0 ? 0 : (stream.frontier - block) / stream.stride;
  if (left < 0 || stream.window == 0) {
    left = 0;
    stream.frontier = block;
  }
  if (left > stream.window / 2) return {};
  if (left > 0 && stream.patience >= uses) {
    stream.patience -= uses;
    return {};
  }
  stream.patience = 0;
  if (stream.window > 0) note_end(stream, kWentOn);
  stream.is_new = stream.window == 0;
  stream.window = stream.window == 0 ? std::max(kFirstWindow, first_window) : 2 * stream.window;
  stream.window = std::min(stream.window, window_max_);
  int64_t first = stream.frontier + stream.stride;
  int64_t count = stream.window;
  if (stream.stride < 0) count = std::min(count, stream.frontier / -stream.stride);
  count = end_at_group(stream.frontier, stream.stride, count);
  stream.frontier += count * stream.stride;
  return {BlockId(static_cast<uint64_t>(first)), stream.stride, static_cast<uint32_t>(count)};
}

// The last `uses` blocks up to this one are used; those before them are skipped.
ReadPlan StreamDetector::go_on(Stream& stream, int64_t block, uint32_t first_window, uint32_t uses) {
  const int64_t asked_for = stream.window == 0 ? 0 : (stream.frontier - stream.last) / stream.stride;
  const int64_t skipped = std::min((block - stream.last) / stream.stride - int64_t{uses}, asked_for);
  const int64_t skipped_first = stream.last + stream.stride;
  ReadPlan plan = extend(stream, block, first_window, uses);
  if (skipped <= 0) return plan;
  plan.skipped_first = BlockId(static_cast<uint64_t>(skipped_first));
  plan.skipped = static_cast<uint32_t>(skipped);
  plan.stride = stream.stride;
  return plan;
}

void StreamDetector::make_dense(Stream& stream) const {
  if (std::abs(stream.stride) <= dense_stride_max_) stream.stride = stream.stride > 0 ? 1 : -1;
}

uint32_t StreamDetector::neighbours_needed() const {
  const auto more = static_cast<uint32_t>(std::max(-score_, 0) / kScorePerNeighbour);
  return std::min(kNeighboursMin + more, kNeighboursMax);
}

// Of its first window, if it has not been told.
void StreamDetector::note_end(Stream& stream, int counts) {
  if (std::exchange(stream.is_new, false)) score_ = std::clamp(score_ + counts, kScoreMin, kScoreMax);
}

// A miss that no stream passes: `stream`, if it is near, may be one with it.
ReadPlan StreamDetector::begin(Stream& stream, bool is_near, int64_t block, Piece piece) {
  const bool ascends = is_near && piece.low <= stream.high + 1 && piece.high > stream.high;
  const bool descends = is_near && piece.high >= stream.low - 1 && piece.low < stream.low;
  const bool is_spaced = is_near && piece.is_block() && stream.low == stream.high;
  note_end(stream, kEnded);
  stream.stride = ascends ? 1 : descends ? -1 : is_spaced ? block - stream.last : 0;
  stream.window = 0;
  stream.low = piece.low;
  stream.high = piece.high;
  const auto came = static_cast<uint32_t>(piece.high - piece.low + 1);
  const bool is_next = ascends || descends;
  stream.neighbours = is_next ? stream.neighbours + 1 : 1;
  const int64_t edge = ascends ? piece.high : descends ? piece.low : block;
  if (is_next && stream.neighbours >= neighbours_needed()) return go_on(stream, edge, came);
  if (is_next) stream.stride = 0;
  return wait_for_more(stream, edge);
}

ReadPlan StreamDetector::wait_for_more(Stream& stream, int64_t block) {
  stream.last = block;
  stream.used_at = ++clock_;
  return {};
}

ReadPlan StreamDetector::on_miss(Brought brought, BlockId block_id) {
  if (window_max_ == 0) return {};
  auto block = static_cast<int64_t>(block_id.value);
  const Piece piece{static_cast<int64_t>(brought.first.value), static_cast<int64_t>(brought.last.value)};
  Stream* oldest = &streams_[0];
  Stream* near = nullptr;
  for (Stream& stream : streams_) {
    if (stream.steps_to(block, 2 * int64_t{stream.window} + 1) > 0) {
      stream.low = piece.low;
      stream.high = piece.high;
      if (stream.window == 0 && ++stream.neighbours < neighbours_needed())
        return wait_for_more(stream, block);
      make_dense(stream);
      // It goes on behind what comes with the block.
      const int64_t edge = stream.stride == 1 ? piece.high : stream.stride == -1 ? piece.low : block;
      // Asked for, or far behind what was.
      const int64_t left = (stream.frontier - block) / stream.stride;
      if (stream.window > 0 && (left >= 0 || left < -kGapMax)) {
        note_end(stream, kEnded);
        stream.window = std::max(stream.window / 4, 1u);
        stream.frontier = edge;
      }
      return go_on(stream, edge, kFirstWindow);
    }
    int64_t distance = block - stream.last;
    if (stream.window == 0 && distance != 0 && std::abs(distance) <= kStrideMax) near = &stream;
    if (stream.used_at < oldest->used_at) oldest = &stream;
  }
  return begin(near ? *near : *oldest, near != nullptr, block, piece);
}

void StreamDetector::fell_short(const ReadPlan& plan, uint32_t done) {
  const auto first = static_cast<int64_t>(plan.first.value);
  const int64_t frontier = first + (int64_t{plan.count} - 1) * plan.stride;
  for (Stream& stream : streams_)
    if (stream.window > 0 && stream.stride == plan.stride && stream.frontier == frontier) {
      stream.frontier = first + (int64_t{done} - 1) * plan.stride;
      stream.patience = kPatience;
    }
}

ReadPlan StreamDetector::on_ahead_use(BlockId block_id, uint32_t uses) {
  auto block = static_cast<int64_t>(block_id.value);
  for (Stream& stream : streams_)
    if (stream.window > 0 && stream.steps_to(block, 2 * int64_t{stream.window} + 1) > 0)
      return go_on(stream, block, kFirstWindow, uses);
  return {};
}

}  // namespace spw::cache
