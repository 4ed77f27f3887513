#include "pass/hints/hint_plan.h"

#include <numeric>

#include "abi/hints.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicInst.h"
#include "pass/llvm_versions.h"
#include "pass/options.h"
#include "pass/windows.h"

namespace spw::pass {

using namespace llvm;

namespace {

// Two addresses so near are in one piece more often than not.
constexpr int64_t kNearBytes = 2048;
// A longer stride enters a new piece too often to ask whether it does.
constexpr int64_t kStrideBytesMax = 512;
constexpr size_t kStreamsMax = 8;
// A longer range crosses blocks too often to be worth one raw address.
constexpr int64_t kReachedBytesMax = 512;
// A longer copy is a call as a rule.
constexpr uint64_t kCopiedBytesMax = 128;
// Blocks that a raw address is carried through.
constexpr unsigned kBlocksBetweenMax = 8;
// How many hints on one base are compared with the next.
constexpr size_t kCompareMax = 8;
constexpr unsigned kComputeDepthMax = 8;
// A loop that surely has as many iterations is cut even if it has no vectors, and one that surely has fewer than the
// other is not even if it has: the chunks' own instructions would be more than the tests they save.
constexpr unsigned kLongIterationsMin = 128;
constexpr unsigned kShortIterationsMax = 8;

struct BaseOffset {
  const SCEV* base;
  int64_t offset;
};

// Takes the constant out of a sum, also out of the start of a sum that moves.
BaseOffset split(const SCEV* address, ScalarEvolution& evolution) {
  if (const auto* steps = dyn_cast<SCEVAddRecExpr>(address); steps && steps->isAffine()) {
    const BaseOffset start = split(steps->getStart(), evolution);
    if (start.offset == 0) return {address, 0};
    return {evolution.getAddRecExpr(start.base, steps->getStepRecurrence(evolution), steps->getLoop(),
                                    SCEV::FlagAnyWrap),
            start.offset};
  }
  if (const auto* sum = dyn_cast<SCEVAddExpr>(address))
    if (const auto* constant = dyn_cast<SCEVConstant>(sum->getOperand(0));
        constant && constant->getAPInt().getSignificantBits() <= 48) {
      SmallVector<const SCEV*, 4> rest(drop_begin(sum->operands()));
      return {evolution.getAddExpr(rest), constant->getAPInt().getSExtValue()};
    }
  return {address, 0};
}

// Intrinsics that are instructions on this processor. What others become may be a function of the program's.
bool is_instruction(Intrinsic::ID id) {
  switch (id) {
    case Intrinsic::abs:
    case Intrinsic::bitreverse:
    case Intrinsic::bswap:
    case Intrinsic::copysign:
    case Intrinsic::ctlz:
    case Intrinsic::ctpop:
    case Intrinsic::cttz:
    case Intrinsic::fabs:
    case Intrinsic::fshl:
    case Intrinsic::fshr:
    case Intrinsic::prefetch:
    case Intrinsic::sadd_with_overflow:
    case Intrinsic::smax:
    case Intrinsic::smin:
    case Intrinsic::ssub_with_overflow:
    case Intrinsic::uadd_sat:
    case Intrinsic::uadd_with_overflow:
    case Intrinsic::umax:
    case Intrinsic::umin:
    case Intrinsic::usub_sat:
    case Intrinsic::usub_with_overflow:
    case Intrinsic::vector_reduce_add:
    case Intrinsic::vector_reduce_and:
    case Intrinsic::vector_reduce_or:
      return true;
    default:
      return false;
  }
}

// Which may ask for raw addresses itself, or come to code that does.
bool may_become_a_call(const Instruction& instruction) {
  if (ends_segment(instruction)) return !short_copy_bytes(instruction);
  const auto* intrinsic = dyn_cast<IntrinsicInst>(&instruction);
  return intrinsic && !intrinsic->isAssumeLikeIntrinsic() && !is_instruction(intrinsic->getIntrinsicID());
}

class Planner {
 public:
  Planner(LoopInfo& loops, DominatorTree& tree, ScalarEvolution& evolution)
      : loops_(loops), tree_(tree), evolution_(evolution) {}

  HintPlan plan(ArrayRef<Access> accesses) {
    for (const Access& access : accesses) {
      if (!tree_.isReachableFromEntry(access.instruction->getParent())) continue;
      PlannedHint hint;
      hint.before = access.instruction;
      hint.address = access.address();
      hint.is_store = access.is_store;
      hint.high_bytes = access.may_cross ? static_cast<int64_t>(access.size_bytes) - 1 : 0;
      if (opt_hint_hoist) hoist(hint);
      if (may_reach(access) && hint.kind == HintWriter::Address::kSure && !is_stream(hint))
        hint.reached.push_back({access, 0});
      hints_.push_back(hint);
    }
    if (opt_hint_merge || opt_hint_dominated) merge();
    HintPlan plan;
    for (PlannedHint& hint : hints_)
      if (!opt_hint_block_wise || !add_stream(hint)) plan.hints.push_back(hint);
    for (auto& [loop, planned] : streams_) {
      choose_cut(planned);
      plan.loops.push_back(std::move(planned));
    }
    number_sites(plan.hints);
    return plan;
  }

 private:
  bool is_in_every_iteration(const Instruction& place, const Loop& loop) const {
    return loop.getLoopLatch() && tree_.dominates(place.getParent(), loop.getLoopLatch());
  }

  void hoist(PlannedHint& hint) const {
    for (;;) {
      Loop* loop = loops_.getLoopFor(hint.before->getParent());
      if (!loop || !loop->getLoopPreheader() || !loop->isLoopInvariant(hint.address) ||
          !is_in_every_iteration(*hint.before, *loop))
        return;
      hint.before = loop->getLoopPreheader()->getTerminator();
      hint.kind = HintWriter::Address::kGuess;
    }
  }

  bool comes_first(const PlannedHint& first, const PlannedHint& second) const {
    return first.before == second.before || tree_.dominates(first.before, second.before);
  }

  // Blocks before those they dominate, instructions in their order, hints at one place in the order of their accesses.
  void sort_by_dominance() {
    tree_.updateDFSNumbers();
    const auto block_number = [&](const Instruction* place) {
      const auto* node = tree_.getNode(place->getParent());
      return node ? node->getDFSNumIn() : ~0u;
    };
    SmallVector<size_t, 0> order(hints_.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](size_t a, size_t b) {
      const Instruction* first = hints_[a].before;
      const Instruction* second = hints_[b].before;
      if (first == second) return a < b;
      if (first->getParent() == second->getParent()) return first->comesBefore(second);
      return block_number(first) < block_number(second);
    });
    SmallVector<PlannedHint, 0> sorted;
    for (const size_t index : order) sorted.push_back(hints_[index]);
    hints_ = std::move(sorted);
  }

  void merge() {
    sort_by_dominance();
    struct Kept {
      size_t index;
      int64_t offset;
    };
    DenseMap<const SCEV*, SmallVector<Kept, 2>> by_base;
    SmallVector<PlannedHint, 0> kept_hints;
    for (const PlannedHint& hint : hints_) {
      const auto [base, offset] = split(evolution_.getSCEV(hint.address), evolution_);
      SmallVector<Kept, 2>& list = by_base[base];
      const bool is_covered = any_of(
          list, [&](const Kept& kept) { return covers(kept_hints[kept.index], hint, offset - kept.offset); });
      if (is_covered) continue;
      if (list.size() == kCompareMax) list.erase(list.begin());
      list.push_back({kept_hints.size(), offset});
      kept_hints.push_back(hint);
    }
    hints_ = std::move(kept_hints);
  }

  // Whether `first` can stand for `second`, which lies `distance` bytes further; then it does.
  bool covers(PlannedHint& first, const PlannedHint& second, int64_t distance) const {
    if (std::abs(distance) >= kNearBytes || !comes_first(first, second)) return false;
    const bool same_block = first.before->getParent() == second.before->getParent();
    if (!(same_block ? opt_hint_merge : opt_hint_dominated)) return false;
    if (!first.reached.empty() && !reaches_for(first, second, distance)) return false;
    if (second.is_store && !first.is_store) {
      if (!same_block) return false;
      first.is_store = true;
    }
    if (loops_.getLoopFor(first.before->getParent()) == loops_.getLoopFor(second.before->getParent())) {
      first.low_bytes = std::min(first.low_bytes, distance + second.low_bytes);
      first.high_bytes = std::max(first.high_bytes, distance + second.high_bytes);
    }
    if (!first.reached.empty())
      for (const auto& [access, offset] : second.reached)
        first.reached.push_back({access, distance + offset});
    return true;
  }

  // Whether the raw address of `first` can be that of `second`, too, which comes later.
  bool reaches_for(PlannedHint& first, const PlannedHint& second, int64_t distance) const {
    if (second.reached.empty()) return false;
    const int64_t low = std::min(first.low_bytes, distance + second.low_bytes);
    const int64_t high = std::max(first.high_bytes, distance + second.high_bytes);
    if (high - low >= kReachedBytesMax) return false;
    SmallPtrSet<BasicBlock*, kBlocksBetweenMax> between;
    if (!is_one_segment(first.before, second.before, between)) return false;
    first.alive_in.insert(between.begin(), between.end());
    return true;
  }

  static bool ends_here(BasicBlock::const_iterator begin, BasicBlock::const_iterator end) {
    return any_of(make_range(begin, end), may_become_a_call);
  }

  // Whether there is no call, and no loop, on the ways from `first`, which dominates it, to `second`: through the
  // blocks `between`, that of `second` included.
  bool is_one_segment(Instruction* first, Instruction* second,
                      SmallPtrSet<BasicBlock*, kBlocksBetweenMax>& between) const {
    BasicBlock* begin = first->getParent();
    BasicBlock* end = second->getParent();
    if (begin == end) return !ends_here(first->getIterator(), second->getIterator());
    const Loop* loop = loops_.getLoopFor(begin);
    if (ends_here(first->getIterator(), begin->end()) || ends_here(end->begin(), second->getIterator()))
      return false;
    SmallVector<BasicBlock*, kBlocksBetweenMax> open{end};
    between.insert(end);
    while (!open.empty()) {
      BasicBlock* block = open.pop_back_val();
      if (loops_.getLoopFor(block) != loop || (loop && block == loop->getHeader())) return false;
      if (block != end && ends_here(block->begin(), block->end())) return false;
      for (BasicBlock* before : predecessors(block)) {
        if (before == begin || !between.insert(before).second) continue;
        if (between.size() > kBlocksBetweenMax || !tree_.isReachableFromEntry(before)) return false;
        open.push_back(before);
      }
    }
    return true;
  }

  // The stride of an address that moves a little at each iteration of its loop; 0: it does not, or not so.
  int64_t stride_of(const PlannedHint& hint) const {
    Loop* loop = loops_.getLoopFor(hint.before->getParent());
    if (!loop || !loop->getLoopPreheader() || !is_in_every_iteration(*hint.before, *loop)) return 0;
    const auto* steps = dyn_cast<SCEVAddRecExpr>(evolution_.getSCEV(hint.address));
    if (!steps || steps->getLoop() != loop || !steps->isAffine()) return 0;
    const auto* stride = dyn_cast<SCEVConstant>(steps->getStepRecurrence(evolution_));
    if (!stride || stride->getAPInt().abs().ugt(kStrideBytesMax)) return 0;
    return can_compute(hint.address, *loop) ? stride->getAPInt().getSExtValue() : 0;
  }

  bool is_stream(const PlannedHint& hint) const { return opt_hint_block_wise && stride_of(hint) != 0; }

  bool add_stream(PlannedHint& hint) {
    hint.stride_bytes = stride_of(hint);
    if (hint.stride_bytes == 0) return false;
    Loop* loop = loops_.getLoopFor(hint.before->getParent());
    const auto* steps = cast<SCEVAddRecExpr>(evolution_.getSCEV(hint.address));
    hint.continues = continues(steps->getStart(), *loop);
    PlannedLoop& planned = streams_[loop];
    if (!planned.loop) {
      planned.loop = loop;
      planned.counted = CountedLoop::recognise(*loop);
      planned.before = loop->getLoopPreheader()->getTerminator();
      for (PHINode& phi : loop->getHeader()->phis())
        planned.entry_values.push_back(phi.getIncomingValueForBlock(loop->getLoopPreheader()));
      if (planned.counted)
        planned.first_count = planned.counted->counter->getIncomingValueForBlock(loop->getLoopPreheader());
    }
    planned.streams.push_back(hint);
    return true;
  }

  // A pointer that the loop around this one carries along.
  bool continues(const SCEV* start, const Loop& loop) const {
    const Loop* parent = loop.getParentLoop();
    const auto* unknown = dyn_cast<SCEVUnknown>(split(start, evolution_).base);
    const auto* phi = unknown ? dyn_cast<PHINode>(unknown->getValue()) : nullptr;
    return parent && phi && parent->contains(phi);
  }

  void choose_cut(PlannedLoop& planned) const {
    const auto has_vectors = [](const Loop& loop) {
      for (const BasicBlock* block : loop.blocks())
        for (const Instruction& instruction : *block)
          if (instruction.getType()->isVectorTy()) return true;
      return false;
    };
    const unsigned known_count = evolution_.getSmallConstantTripCount(planned.loop);  // 0: not known
    const bool is_long = known_count >= kLongIterationsMin;
    const bool is_short = known_count > 0 && known_count <= kShortIterationsMax;
    planned.is_cut = opt_hint_chunks && planned.counted && planned.streams.size() <= kStreamsMax &&
                     (is_long || (!is_short && has_vectors(*planned.loop)));
  }

  LoopInfo& loops_;
  DominatorTree& tree_;
  ScalarEvolution& evolution_;
  SmallVector<PlannedHint, 0> hints_;
  MapVector<Loop*, PlannedLoop> streams_;
};

bool can_compute_within(Value* value, const Loop& loop, unsigned depth) {
  if (loop.isLoopInvariant(value)) return true;
  auto* instruction = cast<Instruction>(value);
  if (isa<PHINode>(instruction)) return instruction->getParent() == loop.getHeader();
  return depth < kComputeDepthMax && !instruction->mayReadOrWriteMemory() &&
         isSafeToSpeculativelyExecute(instruction) &&
         all_of(
             instruction->operands(),
             [&](Use& operand) { return can_compute_within(operand, loop, depth + 1); });
}

}  // namespace

bool may_reach(const Access& access) {
  return opt_reach && access.size_bytes <= static_cast<uint64_t>(kReachedBytesMax);
}

std::optional<uint64_t> short_copy_bytes(const Instruction& instruction) {
  const auto* memory = dyn_cast<MemIntrinsic>(&instruction);
  if (!opt_reach || !memory || isa<MemMoveInst>(memory) || memory->isVolatile()) return {};
  const auto* length = dyn_cast<ConstantInt>(memory->getLength());
  if (!length || length->isZero() || length->getZExtValue() > kCopiedBytesMax) return {};
  if (memory->getDestAddressSpace() != 0) return {};
  if (const auto* transfer = dyn_cast<MemTransferInst>(memory);
      transfer && transfer->getSourceAddressSpace() != 0)
    return {};
  return length->getZExtValue();
}

// Whether the raw address of `site` may still be of use at `place`, which it dominates, or behind it. Where it is of
// use in other blocks, it is in all of `alive_in`: there may be ways from one to another that no loop is known of.
bool is_alive_behind(const PlannedHint& site, const Instruction* place) {
  const BasicBlock* own = site.before->getParent();
  return any_of(site.reached, [&](const PlannedHint::Reached& reached) {
    const Instruction* use = reached.access.instruction;
    return use->getParent() != own ||
           (place->getParent() == own && (use == place || place->comesBefore(use)));
  });
}

// A number above those of the sites before it in the segment whose raw addresses are still of use.
void number_sites(MutableArrayRef<PlannedHint> hints) {
  // Each comes behind those that dominate it; but hints are written last to first, so of those at one place the last
  // runs first.
  SmallVector<PlannedHint*, 0> sites;
  for (PlannedHint& hint : hints)
    if (!hint.reached.empty()) sites.push_back(&hint);
  for (auto begin = sites.begin(); begin != sites.end();) {
    const auto end = std::find_if(begin, sites.end(),
                                  [&](const PlannedHint* site) { return site->before != (*begin)->before; });
    std::reverse(begin, end);
    begin = end;
  }
  DenseMap<const BasicBlock*, SmallVector<PlannedHint*, 4>> alive_in;
  for (PlannedHint* site : sites) {
    const BasicBlock* block = site->before->getParent();
    SmallVector<PlannedHint*, 4>& earlier = alive_in[block];
    erase_if(earlier, [&](const PlannedHint* other) { return !is_alive_behind(*other, site->before); });
    for (const PlannedHint* other : earlier) site->site = std::max(site->site, other->site + 1);
    if (site->site >= SPW_REACHES_MAX) {
      site->reached.clear();
      continue;
    }
    earlier.push_back(site);
    for (const BasicBlock* other : site->alive_in) alive_in[other].push_back(site);
  }
}

HintPlan plan_hints(ArrayRef<Access> accesses, LoopInfo& loops, DominatorTree& tree,
                    ScalarEvolution& evolution) {
  return Planner(loops, tree, evolution).plan(accesses);
}

bool can_compute(Value* address, const Loop& loop) { return can_compute_within(address, loop, 0); }

Value* compute(Value* address, const Loop& loop, ValueToValueMapTy& known, IRBuilder<>& builder) {
  if (const auto found = known.find(address); found != known.end()) return found->second;
  if (loop.isLoopInvariant(address)) return address;
  auto* instruction = cast<Instruction>(address);
  Instruction* copy = instruction->clone();
  for (Use& operand : copy->operands()) operand.set(compute(operand, loop, known, builder));
  drop_what_may_be_undefined(*copy);
  builder.Insert(copy);
  known[address] = copy;
  return copy;
}

}  // namespace spw::pass
