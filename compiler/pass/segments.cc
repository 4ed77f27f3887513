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

// A call in every iteration would close every window; and what a window costs at each call of a large loop, it does not
// earn there.
bool SegmentPlanner::suits_windows(const Loop& loop) {
  const auto [known, is_new] = suits_.try_emplace(&loop, false);
  if (!is_new) return known->second;
  constexpr unsigned kBlocksMax = 64;
  if (loop.getNumBlocks() > kBlocksMax) return false;
  SmallVector<BasicBlock*, 4> latches;
  loop.getLoopLatches(latches);
  const bool always_calls = any_of(loop.blocks(), [&](BasicBlock* block) {
    return any_of(latches, [&](BasicBlock* latch) { return tree_.dominates(block, latch); }) &&
           any_of(*block, may_translate);
  });
  return suits_[&loop] = !always_calls;
}

const Loop* SegmentPlanner::nest_of(const Instruction& place) {
  const Loop* nest = nullptr;
  for (const Loop* loop = loops_.getLoopFor(place.getParent()); loop; loop = loop->getParentLoop())
    if (suits_windows(*loop)) nest = loop;
  return nest;
}

bool SegmentPlanner::is_stream(const Access& access) {
  if (!opt_windows) return false;
  const Loop* loop = loops_.getLoopFor(access.instruction->getParent());
  if (!loop || !suits_windows(*loop) || any_of(*access.instruction->getParent(), may_translate)) return false;
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
  offsets.push_back(offset);
  return true;
}

SmallVector<Group, 8> SegmentPlanner::group(ArrayRef<Access> run, SmallVectorImpl<size_t>& group_of) {
  SmallVector<Group, 8> groups;
  for (const Access& access : run) {
    // Only the last few groups are asked: the distance of two addresses is not cheap to find.
    constexpr size_t kLookedAt = 8;
    size_t found = groups.size();
    for (size_t i = groups.size(); opt_merge && i-- > 0 && groups.size() - i <= kLookedAt;)
      if (groups[i].try_add(access, evolution_, kSpanMax)) {
        found = i;
        break;
      }
    if (found == groups.size()) {
      groups.emplace_back(access);
      groups.back().is_stream = is_stream(access);
    }
    group_of.push_back(found);
  }
  return groups;
}

bool SegmentPlanner::takes_window(const Group& group) {
  if (!group.is_stream) return false;
  unsigned& taken = streams_[loops_.getLoopFor(group.accesses[0].instruction->getParent())];
  return taken < kStreamsPerLoopMax && ++taken;
}

// Walks the run from the first group that pays. A group that pays and whose address is known in front of the segment is
// taken in; one whose address is not either ends the segment or, when the groups taken in would lose more by that, is
// left to be translated access by access, as is every group that does not pay.
size_t SegmentPlanner::plan_segment(ArrayRef<Access> run) {
  SmallVector<size_t, 16> group_of;
  SmallVector<Group, 8> groups = group(run, group_of);
  size_t begin = 0;
  while (begin < run.size() && !groups[group_of[begin]].pays()) ++begin;
  if (begin == run.size()) return run.size();

  Instruction* head = run[begin].instruction;
  SmallVector<Group, 8> taken;
  SmallDenseMap<size_t, size_t> taken_as;
  Instruction* last = nullptr;
  size_t translations = 0;
  size_t alone = 0;  // accesses translated one by one since the last of a group taken in
  size_t end = begin;
  for (; end < run.size(); ++end) {
    const Access& access = run[end];
    const Group& group = groups[group_of[end]];
    const auto known = taken_as.find(group_of[end]);
    const bool is_new = known == taken_as.end();
    const bool begins = is_new && group.pays() && group.accesses[0].instruction == access.instruction;
    if (begins && !available_before(access.address(), head, 0)) {
      const size_t lost = count_if(drop_begin(seq(end, run.size())),
                                   [&](size_t i) { return taken_as.count(group_of[i]) != 0; });
      if (lost < group.accesses.size()) break;
    } else if (begins) {
      if (translations + alone + 1 > Segment::kTranslationsMax) break;
      taken_as[group_of[end]] = taken.size();
      taken.emplace_back(access);
      taken.back().is_stream = takes_window(group);
      translations += alone + 1;
      alone = 0;
      last = access.instruction;
      continue;
    }
    if (is_new) {
      ++alone;
      continue;
    }
    if (translations + alone > Segment::kTranslationsMax) break;
    taken[known->second].try_add(access, evolution_, kSpanMax);
    translations += alone;
    alone = 0;
    last = access.instruction;
  }

  Segment segment;
  for (Group& group : taken)
    if (group.pays()) segment.groups.push_back(std::move(group));
  if (!segment.groups.empty()) {
    segment.first = segment.groups.front().accesses.front().instruction;
    segment.last = last;
    segment.translations = translations + alone;
    planned_.push_back(std::move(segment));
  }
  return end;
}

void SegmentPlanner::plan_run(ArrayRef<Access> run) {
  // A bound on what is grouped at once keeps long blocks linear.
  constexpr size_t kLookAhead = 64;
  while (!run.empty()) run = run.drop_front(plan_segment(run.take_front(kLookAhead)));
}

SmallVector<Segment, 0> SegmentPlanner::plan(ArrayRef<Access> accesses) {
  size_t begin = 0;
  for (size_t i = 1; i < accesses.size(); ++i) {
    const Instruction* before = accesses[i - 1].instruction;
    const Instruction* here = accesses[i].instruction;
    if (before->getParent() == here->getParent() &&
        none_of(make_range(std::next(before->getIterator()), here->getIterator()), ends_segment))
      continue;
    plan_run(accesses.slice(begin, i - begin));
    begin = i;
  }
  plan_run(accesses.drop_front(begin));
  return std::move(planned_);
}

}  // namespace spw::pass
