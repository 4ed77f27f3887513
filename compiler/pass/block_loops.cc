#include "pass/block_loops.h"

#include "abi/abi.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LCSSA.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"
#include "llvm/Transforms/Utils/ValueMapper.h"
#include "pass/llvm_versions.h"
#include "pass/segments.h"

namespace spw::pass {

using namespace llvm;

namespace {

constexpr uint64_t kIterationsMin = 16;  // fewer in all: a dispatch does not pay
constexpr uint64_t kStrideMax = 512;     // further at each step: too few iterations in a granule
constexpr int64_t kSpanMax = 512;
constexpr size_t kStreamsMax = SPW_STABLE_TRANSLATIONS - 1;
constexpr size_t kInstructionsMax = 400;  // the loop is copied once

struct Stream {
  Group group;
  int64_t stride_bytes = 0;
  const SCEV* start = nullptr;  // lowest address of the first iteration
  Value* low = nullptr;         // the same, expanded in the preheader
};

struct Plan {
  Loop* loop = nullptr;
  SmallVector<Stream, 4> streams;
  const SCEV* backedges = nullptr;
  Value* backedges_value = nullptr;
};

class Planner {
 public:
  Planner(ScalarEvolution& evolution, DominatorTree& tree, const SetVector<Instruction*>& pending,
          const DataLayout& layout)
      : evolution_(evolution), tree_(tree), pending_(pending), layout_(layout) {}

  bool plan(Loop* loop, Plan& plan) {
    plan.loop = loop;
    return has_shape(*loop) && counts(plan) && find_streams(plan);
  }

 private:
  static bool has_shape(const Loop& loop) {
    const BasicBlock* latch = loop.getLoopLatch();
    return loop.isLoopSimplifyForm() && loop.isInnermost() && loop.getExitingBlock() == latch &&
           loop.getUniqueExitBlock() && isa<BranchInst>(latch->getTerminator());
  }

  bool counts(Plan& plan) {
    plan.backedges = evolution_.getBackedgeTakenCount(plan.loop);
    if (isa<SCEVCouldNotCompute>(plan.backedges) || !plan.backedges->getType()->isIntegerTy() ||
        evolution_.getTypeSizeInBits(plan.backedges->getType()) > 64)
      return false;
    return evolution_.getUnsignedRangeMax(plan.backedges).uge(kIterationsMin);
  }

  bool find_streams(Plan& plan) {
    size_t instruction_count = 0;
    for (BasicBlock* block : plan.loop->blocks()) {
      for (Instruction& instruction : *block) {
        if (++instruction_count > kInstructionsMax || may_translate(instruction)) return false;
        const auto* call = dyn_cast<CallBase>(&instruction);
        if (call && (call->cannotDuplicate() || call->isConvergent())) return false;
        if (!pending_.contains(&instruction)) continue;
        if (!tree_.dominates(block, plan.loop->getLoopLatch())) return false;
        if (!add(plan, *access_of(instruction, layout_))) return false;
      }
    }
    return !plan.streams.empty();
  }

  bool add(Plan& plan, const Access& access) {
    const SCEV* address = evolution_.getSCEV(access.address());
    int64_t stride_bytes = 0;
    const SCEV* start = address;
    if (const auto* steps = dyn_cast<SCEVAddRecExpr>(address); steps && steps->getLoop() == plan.loop) {
      const auto* stride =
          steps->isAffine() ? dyn_cast<SCEVConstant>(steps->getStepRecurrence(evolution_)) : nullptr;
      if (!stride || stride->getAPInt().abs().ugt(kStrideMax)) return false;
      stride_bytes = stride->getAPInt().getSExtValue();
      start = steps->getStart();
    } else if (!evolution_.isLoopInvariant(address, plan.loop)) {
      return false;
    }
    for (Stream& stream : plan.streams)
      if (stream.stride_bytes == stride_bytes && stream.group.try_add(access, evolution_, kSpanMax))
        return true;
    if (plan.streams.size() == kStreamsMax) return false;
    plan.streams.push_back({Group(access), stride_bytes, start});
    return true;
  }

  ScalarEvolution& evolution_;
  DominatorTree& tree_;
  const SetVector<Instruction*>& pending_;
  const DataLayout& layout_;
};

// Expands what the dispatch needs into the preheader. Nothing may have been split yet: the expander reuses values by
// the dominator tree it was given.
bool expand(Plan& plan, ScalarEvolution& evolution, const DataLayout& layout) {
  SCEVExpander expander = make_expander(evolution, layout);
  Instruction* place = plan.loop->getLoopPreheader()->getTerminator();
  if (!expander.isSafeToExpandAt(plan.backedges, place)) return false;
  for (const Stream& stream : plan.streams)
    if (!expander.isSafeToExpandAt(stream.start, place)) return false;
  Type* word = Type::getInt64Ty(place->getContext());
  Value* backedges = expander.expandCodeFor(plan.backedges, plan.backedges->getType(), place);
  IRBuilder<> builder(place);
  plan.backedges_value = builder.CreateFreeze(builder.CreateZExt(backedges, word));
  for (Stream& stream : plan.streams) {
    Value* first = expander.expandCodeFor(stream.start, builder.getPtrTy(), place);
    stream.low = ptr_add(builder, first, builder.getInt64(static_cast<uint64_t>(stream.group.low)));
  }
  return true;
}

class LoopWriter {
 public:
  LoopWriter(Plan& plan, Translator& translator)
      : plan_(plan),
        translator_(translator),
        context_(translator.function().getContext()),
        word_(Type::getInt64Ty(context_)),
        preheader_(plan.loop->getLoopPreheader()),
        header_(plan.loop->getHeader()),
        latch_(plan.loop->getLoopLatch()),
        exit_(plan.loop->getUniqueExitBlock()),
        place_(preheader_->getTerminator()->getDebugLoc()) {}

  void write(SetVector<Instruction*>& pending) {
    copy_loop(pending);
    enter_through_dispatch();
    leave_slow_loop();
    leave_fast_loop();
    write_dispatch();
    for (Stream& stream : plan_.streams)
      for (const Access& access : stream.group.accesses) pending.remove(access.instruction);
  }

 private:
  BasicBlock* new_block(const char* name) {
    return BasicBlock::Create(context_, name, &translator_.function(), header_);
  }

  void copy_loop(SetVector<Instruction*>& pending) {
    SmallVector<BasicBlock*, 8> blocks;
    for (BasicBlock* block : plan_.loop->blocks()) {
      BasicBlock* copy = CloneBasicBlock(block, copies_, ".slow", block->getParent());
      copies_[block] = copy;
      blocks.push_back(copy);
    }
    remapInstructionsInBlocks(blocks, copies_);
    for (BasicBlock* block : plan_.loop->blocks())
      for (Instruction& instruction : *block)
        if (pending.contains(&instruction)) pending.insert(cast<Instruction>(copies_[&instruction]));
    slow_header_ = cast<BasicBlock>(copies_[header_]);
    slow_latch_ = cast<BasicBlock>(copies_[latch_]);
    for (PHINode& phi : exit_->phis())
      phi.addIncoming(copy_of(phi.getIncomingValueForBlock(latch_)), slow_latch_);
  }

  Value* copy_of(Value* value) {
    const auto found = copies_.find(value);
    return found == copies_.end() ? value : static_cast<Value*>(found->second);
  }

  // Both loops start from the phis of `dispatch`, which hold the state in front of the next iteration.
  void enter_through_dispatch() {
    dispatch_ = new_block("spw.dispatch");
    fast_entry_ = new_block("spw.fast_entry");
    slow_entry_ = new_block("spw.slow_entry");
    IRBuilder<> builder(slow_entry_);
    builder.SetCurrentDebugLocation(place_);
    builder.CreateBr(slow_header_);
    builder.SetInsertPoint(dispatch_);
    for (PHINode& phi : header_->phis()) {
      PHINode* state = builder.CreatePHI(phi.getType(), 3, phi.getName());
      state->addIncoming(phi.getIncomingValueForBlock(preheader_), preheader_);
      states_.push_back({&phi, state});
      auto* slow_phi = cast<PHINode>(copies_[&phi]);
      replace_entry(phi, state, fast_entry_);
      replace_entry(*slow_phi, state, slow_entry_);
    }
    iteration_ = builder.CreatePHI(word_, 3, "spw.iteration");
    iteration_->addIncoming(builder.getInt64(0), preheader_);
    preheader_->getTerminator()->replaceSuccessorWith(header_, dispatch_);
    builder.SetInsertPoint(preheader_->getTerminator());
    is_short_ =
        builder.CreateICmpULT(plan_.backedges_value, builder.getInt64(kIterationsMin - 1), "spw.short");
  }

  void replace_entry(PHINode& phi, Value* state, BasicBlock* entry) {
    const int index = phi.getBasicBlockIndex(preheader_);
    phi.setIncomingValue(index, state);
    phi.setIncomingBlock(index, entry);
  }

  // After an iteration of the slow loop: the next one when there are few, else a dispatch.
  void leave_slow_loop() {
    BasicBlock* again = new_block("spw.slow_again");
    IRBuilder<> builder(again);
    builder.SetCurrentDebugLocation(place_);
    builder.CreateCondBr(is_short_, slow_header_, dispatch_);
    slow_latch_->getTerminator()->replaceSuccessorWith(slow_header_, again);
    slow_latch_->getTerminator()->setMetadata(LLVMContext::MD_loop, nullptr);
    for (auto& [phi, state] : states_) {
      auto* slow_phi = cast<PHINode>(copies_[phi]);
      state->addIncoming(slow_phi->getIncomingValueForBlock(slow_latch_), again);
      slow_phi->replaceIncomingBlockWith(slow_latch_, again);
    }
    iteration_->addIncoming(
        IRBuilder<>(again->getTerminator()).CreateAdd(iteration_, ConstantInt::get(word_, 1)), again);
  }

  // The fast loop counts down instead of asking its own condition; what it leaves to depends on what is left in all.
  void leave_fast_loop() {
    BasicBlock* done = new_block("spw.fast_done");
    done->moveAfter(latch_);
    IRBuilder<> builder(&*header_->begin());
    left_ = builder.CreatePHI(word_, 2, "spw.left");
    Instruction* old = latch_->getTerminator();
    builder.SetInsertPoint(old);
    Value* finished = builder.CreateICmpEQ(left_, builder.getInt64(0));
    left_->addIncoming(builder.CreateAdd(left_, builder.getInt64(~uint64_t(0))), latch_);
    BranchInst* branch = builder.CreateCondBr(finished, done, header_);
    branch->copyMetadata(*old, {LLVMContext::MD_loop});
    old->eraseFromParent();

    builder.SetInsertPoint(done);
    builder.SetCurrentDebugLocation(place_);
    count_ = PHINode::Create(word_, 1, "spw.count", done);  // more iterations than one that this chunk ran
    Value* last = builder.CreateAdd(iteration_, count_);
    iteration_->addIncoming(builder.CreateAdd(last, builder.getInt64(1)), done);
    builder.CreateCondBr(builder.CreateICmpEQ(last, plan_.backedges_value), exit_, dispatch_);
    for (auto& [phi, state] : states_) state->addIncoming(phi->getIncomingValueForBlock(latch_), done);
    exit_->replacePhiUsesWith(latch_, done);
  }

  // The most iterations, less one, that the stream stays in the granule of its next access.
  Value* iterations_within(IRBuilder<>& builder, const Stream& stream, Value* bits) {
    if (stream.stride_bytes == 0) return builder.getInt64(~uint64_t(0));
    const uint64_t step = static_cast<uint64_t>(std::abs(stream.stride_bytes));
    Value* offset = builder.CreateTrunc(builder.CreateAnd(bits, builder.getInt64(SPW_GRANULE_BYTES - 1)),
                                        builder.getInt32Ty());
    Value* room =
        stream.stride_bytes > 0
            ? builder.CreateSub(builder.getInt32(SPW_GRANULE_BYTES - stream.group.span_bytes()), offset)
            : offset;
    Value* count = builder.CreateZExt(builder.CreateUDiv(room, builder.getInt32(step)), word_);
    return builder.CreateSelect(is_managed(builder, bits), count, builder.getInt64(~uint64_t(0)));
  }

  void write_dispatch() {
    BasicBlock* block = new_block("spw.streams");
    IRBuilder<> builder(dispatch_);
    builder.SetCurrentDebugLocation(place_);
    builder.CreateCondBr(is_short_, slow_entry_, block);
    builder.SetInsertPoint(block);
    Value* count = builder.CreateSub(plan_.backedges_value, iteration_);
    for (Stream& stream : plan_.streams) {
      Value* moved =
          builder.CreateMul(iteration_, builder.getInt64(static_cast<uint64_t>(stream.stride_bytes)));
      Value* low = ptr_add(builder, stream.low, moved);
      Value* bits = builder.CreatePtrToInt(low, word_, "spw.address");
      const Translator::Range range{low, bits, stream.group.span_bytes(), true, stream.group.is_store};
      Value* delta = translator_.translate_range(range, &block, slow_entry_, place_);
      builder.SetInsertPoint(block);
      count = builder.CreateBinaryIntrinsic(Intrinsic::umin, count, iterations_within(builder, stream, bits));
      use_raw_addresses(stream, delta);
    }
    builder.CreateBr(fast_entry_);
    builder.SetInsertPoint(fast_entry_);
    builder.CreateBr(header_);
    left_->addIncoming(count, fast_entry_);
    count_->replaceAllUsesWith(count);
    count_->eraseFromParent();
  }

  void use_raw_addresses(const Stream& stream, Value* delta) {
    for (const Access& access : stream.group.accesses) {
      IRBuilder<> builder(access.instruction);
      access.set_address(ptr_add(builder, access.address(), delta, "spw.raw"));
      forget_invariance(*access.instruction);
    }
  }

  Plan& plan_;
  Translator& translator_;
  LLVMContext& context_;
  Type* word_;
  BasicBlock* preheader_;
  BasicBlock* header_;
  BasicBlock* latch_;
  BasicBlock* exit_;
  DebugLoc place_;
  ValueToValueMapTy copies_;
  BasicBlock* slow_header_ = nullptr;
  BasicBlock* slow_latch_ = nullptr;
  BasicBlock* dispatch_ = nullptr;
  BasicBlock* fast_entry_ = nullptr;
  BasicBlock* slow_entry_ = nullptr;
  SmallVector<std::pair<PHINode*, PHINode*>, 8> states_;  // of the fast header and of dispatch
  PHINode* iteration_ = nullptr;
  PHINode* left_ = nullptr;
  PHINode* count_ = nullptr;
  Value* is_short_ = nullptr;
};

}  // namespace

bool make_loops_block_wise(Translator& translator, FunctionAnalysisManager& analyses,
                           SetVector<Instruction*>& pending) {
  Function& function = translator.function();
  auto& loops = analyses.getResult<LoopAnalysis>(function);
  if (loops.empty()) return false;
  auto& tree = analyses.getResult<DominatorTreeAnalysis>(function);
  auto& evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  auto& assumptions = analyses.getResult<AssumptionAnalysis>(function);
  const DataLayout& layout = function.getParent()->getDataLayout();

  SmallVector<Loop*, 8> innermost;
  for (Loop* loop : loops.getLoopsInPreorder())
    if (loop->isInnermost() && any_of(loop->blocks(), [&](BasicBlock* block) {
          return any_of(*block, [&](Instruction& instruction) { return pending.contains(&instruction); });
        }))
      innermost.push_back(loop);
  for (Loop* loop : innermost) simplifyLoop(loop, &tree, &loops, &evolution, &assumptions, nullptr, false);

  Planner planner(evolution, tree, pending, layout);
  SmallVector<Plan, 4> plans;
  for (Loop* loop : innermost) {
    Plan plan;
    if (!planner.plan(loop, plan)) continue;
    formLCSSA(*loop, tree, &loops, &evolution);
    if (expand(plan, evolution, layout)) plans.push_back(std::move(plan));
  }
  for (Plan& plan : plans) LoopWriter(plan, translator).write(pending);
  return !innermost.empty();
}

}  // namespace spw::pass
