#include "pass/segments.h"

#include "abi/abi.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicInst.h"
#include "pass/options.h"

namespace spw::pass {

using namespace llvm;

namespace {

// A wider range crosses a granule too often to be worth a common translation.
constexpr int64_t kSpanMax = 512;
// A stream that moves further at each step leaves its window before the window has paid.
constexpr uint64_t kStrideMax = 512;
// Each window keeps two registers busy.
constexpr unsigned kStreamsPerLoopMax = 3;
constexpr size_t kTranslationsMax = SPW_STABLE_TRANSLATIONS - 1;

bool ends_segment(const Instruction& instruction) {
  if (may_translate(instruction)) return true;
  const auto* call = dyn_cast<CallBase>(&instruction);
  return call && (call->isConvergent() || !isGuaranteedToTransferExecutionToSuccessor(call) ||
                  call->getIntrinsicID() == Intrinsic::experimental_noalias_scope_decl);
}

// Whether `value` is known in front of `place`, or is plain arithmetic in the same block that can be moved there.
bool available_before(const Value* value, const Instruction* place, unsigned depth) {
  const auto* instruction = dyn_cast<Instruction>(value);
  if (!instruction || instruction->getParent() != place->getParent() || instruction->comesBefore(place))
    return true;
  constexpr unsigned kDepthMax = 6;
  if (depth >= kDepthMax || !isa<GetElementPtrInst, CastInst, BinaryOperator>(instruction) ||
      !isSafeToSpeculativelyExecute(instruction))
    return false;
  return all_of(instruction->operands(),
                [&](const Use& use) { return available_before(use, place, depth + 1); });
}

}  // namespace

bool SegmentPlanner::is_stream(const Access& access) {
  if (!opt_windows) return false;
  const Loop* loop = loops_.getLoopFor(access.instruction->getParent());
  if (!loop) return false;
  const SCEV* address = evolution_.getSCEV(access.address());
  if (evolution_.isLoopInvariant(address, loop)) return true;
  const auto* steps = dyn_cast<SCEVAddRecExpr>(address);
  if (!steps || steps->getLoop() != loop || !steps->isAffine()) return false;
  const auto* stride = dyn_cast<SCEVConstant>(steps->getStepRecurrence(evolution_));
  return stride && stride->getAPInt().abs().ule(kStrideMax);
}

bool Group::try_add(const Access& access, ScalarEvolution& evolution, int64_t span_bytes_max) {
  const SCEV* distance =
      evolution.getMinusSCEV(evolution.getSCEV(access.address()), evolution.getSCEV(accesses[0].address()));
  const auto* constant = dyn_cast<SCEVConstant>(distance);
  if (!constant || constant->getAPInt().getSignificantBits() > 32) return false;
  const int64_t offset = constant->getAPInt().getSExtValue();
  const int64_t new_low = std::min(low, offset);
  const int64_t new_high = std::max(high, offset + static_cast<int64_t>(access.size_bytes));
  if (new_high - new_low > span_bytes_max) return false;
  low = new_low;
  high = new_high;
  is_store |= access.is_store;
  accesses.push_back(access);
  return true;
}

void SegmentPlanner::place(const Access& access) {
  if (opt_merge && any_of(open_, [&](Group& group) { return group.try_add(access, evolution_, kSpanMax); }))
    return;
  if (open_.size() == kTranslationsMax ||
      (!open_.empty() && !available_before(access.address(), open_[0].accesses[0].instruction, 0)))
    close();
  Group group(access);
  group.is_stream = is_stream(access);
  open_.push_back(std::move(group));
}

void SegmentPlanner::close() {
  Segment segment;
  for (Group& group : open_) {
    if (group.is_stream) {
      unsigned& streams = streams_[loops_.getLoopFor(group.accesses[0].instruction->getParent())];
      group.is_stream = streams < kStreamsPerLoopMax;
      streams += group.is_stream;
    }
    if (group.pays()) segment.groups.push_back(std::move(group));
  }
  open_.clear();
  if (segment.groups.empty()) return;
  segment.first = segment.groups.front().accesses.front().instruction;
  segment.last = segment.groups.front().accesses.back().instruction;
  for (const Group& group : segment.groups) {
    Instruction* last = group.accesses.back().instruction;
    if (segment.last->comesBefore(last)) segment.last = last;
  }
  planned_.push_back(std::move(segment));
}

SmallVector<Segment, 0> SegmentPlanner::plan(ArrayRef<Access> accesses) {
  const Instruction* before = nullptr;
  for (const Access& access : accesses) {
    const Instruction* here = access.instruction;
    if (before && before->getParent() != here->getParent()) {
      close();
    } else if (before) {
      const bool broken =
          any_of(make_range(std::next(before->getIterator()), here->getIterator()), ends_segment);
      if (broken) close();
    }
    place(access);
    before = here;
  }
  close();
  return std::move(planned_);
}

}  // namespace spw::pass
