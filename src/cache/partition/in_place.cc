// Where each block lies at its own address: blocks that are dirty from the start, which are runs of zeros, and what was
// there before the cache was (adopt). A miss costs a trip through the kernel, so a block that was never written is
// given to the program together with its never-written neighbours, while frames are plentiful. They are writable at
// once, so they count as dirty; what is still all zero when its turn to be written comes is left out.
// A program that writes its way through faults less and less often: the groups behind a run that follows groups which
// are cached come along (SharedCacheParts::zeros_ahead).
// Where frames are short a run may go before the program has come to its end, most of all where it writes its way
// through many places in turn. Then the demanded block is one that has just gone, and runs get shorter; they get longer
// again while that does not happen.
#include <algorithm>
#include <optional>

#include "cache/partition/partition.h"
#include "platform/futex.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

namespace {

// Frames are plentiful while more than this share of them is free.
constexpr uint32_t kPlentifulShare = 8;
// A run is at least so long, or nothing would be learnt.
constexpr uint32_t kZeroRunMin = 2;
// So many demanded blocks in a row have to be new for runs to get longer.
constexpr uint32_t kNewZerosInRow = 64;

}  // namespace

// Not cached, live, and nothing was ever written to it.
bool Partition::is_zero_and_new(BlockId block) const {
  return is_new(context_.blocks.locate_for_fill(block)) && context_.directory.find(block) == kNoFrame;
}

bool Partition::has_plenty() const {
  return organisation_->free_frames() > organisation_->limit() / kPlentifulShare;
}

// The never-written blocks around the demanded one. Without plenty only those behind it, and only where its neighbour
// before it is cached: the program seems to write its way through.
Partition::BlockSpan Partition::plan_zero_run(BlockId demanded) const {
  const bool plenty = has_plenty();
  const uint64_t group_first = group_of(demanded) << kGroupShift;
  uint64_t begin = demanded.value, end = begin + 1;
  if (!plenty && (begin == 0 || context_.directory.find(BlockId(begin - 1)) == kNoFrame)) return {begin, end};
  const uint64_t length_max = plenty ? std::min<uint64_t>(run_blocks_max_, organisation_->free_frames())
                                     : std::min(organisation_->evict_batch(), zero_run_max_);
  while (end < group_first + kGroupBlocks && end - begin < length_max && is_zero_and_new(BlockId(end))) ++end;
  while (plenty && begin > group_first && end - begin < length_max && is_zero_and_new(BlockId(begin - 1)))
    --begin;
  return {begin, end};
}

// Takes frames for the run, whose blocks are dirty from the start; `demanded`,
// if it is one of them, gets a reference. How many it got frames for.
uint64_t Partition::install_dirty(BlockSpan wanted, Contents contents, std::optional<BlockId> demanded) {
  Resident run[kGroupBlocks];
  size_t length = 0;
  for (uint64_t block = wanted.begin; block < wanted.end; ++block) {
    const Organisation::Taken taken = take(BlockId(block), BlockId(block) == demanded ? 1 : 0, false);
    if (taken.how != Organisation::Take::kTaken) break;
    context_.tell_of_fill(BlockId(block), false);
    if (BlockId(block) == demanded)
      learn_zero_run(organisation_->came_back(taken.frame), organisation_->evict_batch());
    run[length++] = {taken.frame, BlockId(block)};
  }
  if (length == 0) return 0;
  context_.frames.install({run, length}, contents, nullptr, true);
  context_.blocks.dirtied(run[0].block, length);
  for (const Resident& resident : std::span(run, length)) {
    AtomicPinWord& pin_word = context_.directory.word(resident.frame);
    if (pin_word.end_filling(FrameState::kResident, PinWord::kDirty | PinWord::kReferenced))
      platform::futex_wake_all(pin_word.futex_half());
  }
  count(contents == Contents::kZeros ? Counter::zero_fills : Counter::adoptions, length);
  count(Counter::bytes_dirtied, length * context_.block_bytes());
  return length;
}

// From a demanded block that was never written, of which `most` could have come at a time.
void Partition::learn_zero_run(bool came_back, uint32_t most) {
  if (came_back) {
    zero_run_max_ = std::max(std::min(zero_run_max_, most) / 2, kZeroRunMin);
    new_zeros_ = 0;
  } else if (++new_zeros_ == kNewZerosInRow) {
    zero_run_max_ = std::min(zero_run_max_, most) * 2;
    new_zeros_ = 0;
  }
}

// Frames for a run that the client fills. One of zeros is no longer than they last.
void Partition::serve_claim(Request& request) {
  auto blocks = static_cast<uint32_t>(request.count);
  if (request.is_unit) blocks = std::min(blocks, zero_run_max_);
  request.cursor = organisation_->take_run(request.block, blocks, request.run);
  request.answer = Answer::kDone;
  if (request.is_unit && request.cursor > 0)
    learn_zero_run(organisation_->came_back(request.run[0]), static_cast<uint32_t>(request.count));
}

// The block is not cached.
bool Partition::serve_zero_run(Request& request) {
  request.backing = context_.blocks.locate_for_fill(request.block);
  if (!is_new(*request.backing)) return false;
  const BlockSpan zeros = plan_zero_run(request.block);
  if (zeros.end - zeros.begin == 1) return false;
  const uint64_t length = install_dirty(zeros, Contents::kZeros, request.block);
  // Nothing more can be evicted now, and the run ends before the demanded block: it comes first where that can happen.
  if (zeros.begin + length <= request.block.value) return false;
  request.frame = context_.directory.find(request.block);
  request.answer = Answer::kReady;
  return true;
}

void Partition::serve_zeros_ahead(Request& request) {
  request.answer = Answer::kDone;
  const BlockId first = request.block;
  if (!has_plenty() || !is_zero_and_new(first)) return;
  install_dirty(plan_zero_run(first), Contents::kZeros, std::nullopt);
}

void Partition::serve_adopt(Request& request) {
  const uint64_t begin = request.block.value;
  request.cursor +=
      install_dirty({begin + request.cursor, begin + request.count}, Contents::kInPlace, std::nullopt);
  request.answer = request.cursor == request.count ? Answer::kDone : Answer::kBlocked;
  if (request.answer == Answer::kBlocked) describe_wait(request);
}

}  // namespace spw::cache
