// Lifting: dirty blocks at their own addresses leave them, many together, to be written, and to go. To write-protect
// each of them instead, and then to give it up, interrupts the processors that run the program twice for a block.
//
//     resident, dirty -> writing -> filling: it is taken away -> lifted (parked): its memory is being written
//         -> written: nobody has asked for it meanwhile, so it may be evicted as it is
//         -> put back: somebody has, or the write failed
//
// Why no write is lost: a block becomes clean (CAS, refs 0) before it is lifted, and a store either is in what is
// lifted or faults, and then waits like one on a block that is being filled, until the block has been put back, where
// stores are noticed (modelled: tests/model/lifted_writes.pml). Its memory stays until its write has ended, wherever it
// is itself by then (IoOp::lifted).
// What cannot be lifted after all, since somebody has just pinned it, is written as it is.
// Threads: the owner's, like all of Writeback.
#include <algorithm>

#include "base/zeros.h"
#include "cache/writeback/run.h"
#include "platform/futex.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;

namespace {
// Of more blocks in a row, to protect them all by one call costs less than to copy them.
constexpr uint32_t kLiftedRunMax = 4;
constexpr size_t kWaitingMax = 64;  // runs
}  // namespace

// What is written for an eviction. What came in dirty may have to be left alone after all.
bool Writeback::may_lift(const IoOp& op, const Run& run) const {
  const BlockId block = run.resident(run.begin).block;
  return run.batch != nullptr && run.count() <= kLiftedRunMax && op.staging == nullptr && run.is_readable &&
         context_.frames.lifts(block) && !context_.comes_summed(block);
}

// Where blocks of this size may be lifted at all.
void Writeback::reserve_for_lifting() {
  if (!context_.frames.lifts(BlockId(0))) return;
  waiting_.reserve(kWaitingMax);
  lifted_.reserve(kWaitingMax * kLiftedRunMax);
}

// What is all zero may be a page that others have, too, and is not written, most likely. (A function of its own, as
// leave_zeros_out().)
[[gnu::noinline]] bool Writeback::may_lift(Resident resident) const {
  return context_.placement.is_placed(resident) &&
         !is_all_zero(context_.data(resident), context_.block_bytes());
}

void Writeback::wait_to_be_lifted(IoOp& op, const Run& run) {
  waiting_.push_back({run, &op});
  if (waiting_.size() == kWaitingMax) lift_waiting();
}

// All together.
void Writeback::lift_waiting() {
  for (const auto& [run, op] : waiting_)
    for (uint32_t place = run.begin; place < run.end; ++place)
      if (const Resident resident = run.resident(place);
          may_lift(resident) && word(resident.frame).try_begin_lift())
        lifted_.push_back(resident);
  for (std::span<const Resident> left = lifted_; !left.empty();) {
    const auto now = left.first(std::min(left.size(), FrameSource::kLiftedMax));
    lift(now);
    left = left.subspan(now.size());
  }
  for (auto& [run, op] : waiting_) send(*op, run);
  waiting_.clear();
  for (const Resident& resident : lifted_)
    if (const PinWord seen = word(resident.frame).load_relaxed(); seen.is_lifted() && seen.refs() > 0)
      put_back(resident.frame);
  lifted_.clear();
}

void Writeback::lift(std::span<const Resident> blocks) const {
  const bool are_lifted = context_.frames.lift(blocks);
  for (const Resident& resident : blocks) {
    AtomicPinWord& pin_word = word(resident.frame);
    if (are_lifted)
      (void)pin_word.park();
    else if (pin_word.end_filling(FrameState::kResident, 0))
      platform::futex_wake_all(pin_word.futex_half());
  }
  if (are_lifted) count(Counter::lifted_blocks, blocks.size());
}

void Writeback::put_back(FrameId frame) {
  AtomicPinWord& pin_word = word(frame);
  const PinWord seen = pin_word.load_relaxed();
  const Resident resident{frame, seen.block()};
  std::byte* const memory = context_.data(resident);
  context_.frames.put_back(resident);
  if (!seen.writing()) context_.frames.forget_lifted(memory);
  if (pin_word.end_filling(FrameState::kResident, 0)) platform::futex_wake_all(pin_word.futex_half());
}

// Its write has ended, which needs its memory no longer.
void Writeback::end_lifted(const IoOp& op, uint32_t i, int error) {
  if (error != 0 && word(op.frames[i]).load_relaxed().is_lifted()) put_back(op.frames[i]);
  if (context_.placement.is_placed({op.frames[i], op.block(i)}))
    context_.frames.forget_lifted(op.data(i, context_.block_bytes()));
}

}  // namespace spw::cache
