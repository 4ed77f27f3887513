// Runs of zeros. Where each block lies at its own address, a miss costs a trip through the kernel, so a block that was never
// written is given to the program together with its never-written neighbours, while frames are plentiful. They are
// writable at once, so they count as dirty; what is still all zero when its turn to be written comes is left out.
#include <algorithm>

#include "cache/partition/partition.h"
#include "platform/futex.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

namespace {

// Frames are plentiful while more than this share of them is free.
constexpr uint32_t kPlentifulShare = 8;

}  // namespace

// Not cached, live, and nothing was ever written to it.
bool Partition::is_zero_and_new(BlockId block) const {
  Backing backing = commons_.blocks.locate_for_fill(block);
  return backing.store != nullptr && !backing.has_contents && commons_.table.find(block) == kNoFrame;
}

// The never-written blocks around the demanded one. Without plenty only those behind it, and only where its neighbour
// before it is cached: the program seems to write its way through.
Partition::ZeroRun Partition::plan_zero_run(BlockId demanded) const {
  const uint32_t free = free_frames();
  const bool plenty = free > limit() / kPlentifulShare;
  const uint64_t group_first = group_of(demanded) << kGroupShift;
  uint64_t begin = demanded.value, end = begin + 1;
  if (!plenty && (begin == 0 || commons_.table.find(BlockId(begin - 1)) == kNoFrame)) return {begin, end};
  const uint64_t length_max = plenty ? std::min<uint64_t>(run_blocks_max_, free) : evict_batch_;
  while (end < group_first + kGroupBlocks && end - begin < length_max && is_zero_and_new(BlockId(end))) ++end;
  while (plenty && begin > group_first && end - begin < length_max && is_zero_and_new(BlockId(begin - 1)))
    --begin;
  return {begin, end};
}

bool Partition::serve_zero_run(Request& request) {
  if (!is_zero_and_new(request.block)) return false;
  auto [begin, end] = plan_zero_run(request.block);
  if (end - begin == 1) return false;
  Resident run[kGroupBlocks];
  for (uint64_t block = begin; block < end; ++block) {
    const uint32_t frame = take_frame();
    if (frame == kNone) {
      // Nothing more can be evicted now; the demanded block comes first where that can happen.
      if (block == begin) return false;
      end = block;
      break;
    }
    const bool demanded = block == request.block.value;
    insert(frame, BlockId(block), demanded ? 1 : 0, false);
    run[block - begin] = {global(frame), BlockId(block)};
    if (demanded) request.frame = global(frame);
  }
  commons_.frames.install({run, end - begin}, Contents::kZeros, nullptr, true);
  for (uint64_t i = 0; i < end - begin; ++i) {
    AtomicPinWord& pin_word = commons_.table.word(run[i].frame);
    if (pin_word.end_filling(FrameState::kResident, PinWord::kDirty | PinWord::kReferenced))
      platform::futex_wake_all(pin_word.futex_half());
  }
  count(Counter::zero_fills, end - begin);
  count(Counter::bytes_dirtied, (end - begin) * commons_.block_bytes());
  request.answer = Answer::kReady;
  return true;
}

}  // namespace spw::cache
