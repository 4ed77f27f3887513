#include "pass/counted_loop.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "pass/llvm_versions.h"

namespace spw::pass {

using namespace llvm;

namespace {

// By how much `next` is more than `counter`, or nothing.
std::optional<int64_t> step_between(const PHINode* counter, const Value* next) {
  if (const auto* add = dyn_cast<BinaryOperator>(next); add && add->getOpcode() == Instruction::Add) {
    const auto* step = dyn_cast<ConstantInt>(add->getOperand(1));
    if (add->getOperand(0) == counter && step) return step->getSExtValue();
  }
  if (const auto* gep = dyn_cast<GEPOperator>(next); gep && gep->getPointerOperand() == counter) {
    const DataLayout& layout = counter->getModule()->getDataLayout();
    APInt step(64, 0);
    if (gep->accumulateConstantOffset(layout, step)) return step.getSExtValue();
  }
  return std::nullopt;
}

bool is_countable_type(const Type* type) {
  return type->isIntegerTy(32) || type->isIntegerTy(64) ||
         (type->isPointerTy() && type->getPointerAddressSpace() == 0);
}

// Whether a counter that moves that way gets to where the predicate no longer holds, and not only by wrapping round.
bool ends(CmpInst::Predicate goes_on, int64_t step) {
  switch (goes_on) {
    case CmpInst::ICMP_NE:
      return true;
    case CmpInst::ICMP_ULT:
    case CmpInst::ICMP_SLT:
      return step > 0;
    case CmpInst::ICMP_UGT:
    case CmpInst::ICMP_SGT:
      return step < 0;
    default:
      return false;
  }
}

}  // namespace

std::optional<CountedLoop> CountedLoop::recognise(const Loop& loop) {
  CountedLoop result;
  result.preheader = loop.getLoopPreheader();
  result.header = loop.getHeader();
  result.latch = loop.getLoopLatch();
  if (!loop.isInnermost() || !result.preheader || !result.latch || result.header->isEHPad())
    return std::nullopt;
  const auto* branch = dyn_cast<BranchInst>(result.latch->getTerminator());
  if (!branch || !branch->isConditional()) return std::nullopt;
  const auto* test = dyn_cast<ICmpInst>(branch->getCondition());
  if (!test) return std::nullopt;
  const bool goes_on_if_true = branch->getSuccessor(0) == result.header;
  result.exit = branch->getSuccessor(goes_on_if_true ? 1 : 0);
  const BasicBlock* again = branch->getSuccessor(goes_on_if_true ? 0 : 1);
  if (again != result.header || loop.contains(result.exit) || result.exit->isEHPad()) return std::nullopt;
  const CmpInst::Predicate predicate = goes_on_if_true ? test->getPredicate() : test->getInversePredicate();
  for (const unsigned operand : {0u, 1u}) {
    result.compared = test->getOperand(operand);
    result.bound = test->getOperand(1 - operand);
    result.goes_on = operand == 0 ? predicate : CmpInst::getSwappedPredicate(predicate);
    if (!loop.isLoopInvariant(result.bound) || !is_countable_type(result.bound->getType())) continue;
    for (PHINode& phi : result.header->phis()) {
      Value* next = phi.getIncomingValueForBlock(result.latch);
      if (result.compared != &phi && result.compared != next) continue;
      const auto step = step_between(&phi, next);
      if (!step || *step == 0 || *step == INT64_MIN || !ends(result.goes_on, *step)) continue;
      result.counter = &phi;
      result.step = *step;
      return result;
    }
  }
  return std::nullopt;
}

CountedLoop CountedLoop::in_copy(const ValueToValueMapTy& copies) const {
  const auto copy = [&](auto* value) {
    const auto found = copies.find(value);
    return found == copies.end() ? value : cast<std::remove_pointer_t<decltype(value)>>(found->second);
  };
  return {copy(preheader), copy(header), copy(latch), copy(exit), copy(counter),
          copy(compared),  copy(bound),  goes_on,     step};
}

namespace {

// What is compared in the iteration in which the counter is `now`.
Value* first_compared(const CountedLoop& loop, IRBuilder<>& builder, Value* now) {
  if (loop.compared == loop.counter) return now;
  if (now->getType()->isPointerTy())
    return ptr_add(builder, now, builder.getInt64(static_cast<uint64_t>(loop.step)));
  return builder.CreateAdd(now, ConstantInt::getSigned(now->getType(), loop.step));
}

}  // namespace

Value* CountedLoop::distance(IRBuilder<>& builder, Value* now) const {
  Value* from = first_compared(*this, builder, now);
  Value* to = bound;
  Value* is_at_bound = CmpInst::isEquality(goes_on)
                           ? nullptr
                           : builder.CreateICmp(CmpInst::getInversePredicate(goes_on), from, to);
  if (from->getType()->isPointerTy()) {
    from = builder.CreatePtrToInt(from, builder.getInt64Ty());
    to = builder.CreatePtrToInt(to, builder.getInt64Ty());
  }
  Value* distance = step > 0 ? builder.CreateSub(to, from) : builder.CreateSub(from, to);
  distance = builder.CreateZExt(distance, builder.getInt64Ty());
  if (is_at_bound) distance = builder.CreateSelect(is_at_bound, builder.getInt64(0), distance);
  // The program may never come to use the bound.
  return builder.CreateFreeze(distance);
}

namespace {

// Whether the loop uses its counter for nothing but to count. (Phis that take it at the chunk's end may use it.)
bool only_counts(const CountedLoop& loop, const BasicBlock* done) {
  if (loop.goes_on != CmpInst::ICMP_NE || !loop.counter->getType()->isIntegerTy()) return false;
  const Value* next = loop.counter->getIncomingValueForBlock(loop.latch);
  const Value* test = cast<BranchInst>(loop.latch->getTerminator())->getCondition();
  const auto counts = [&](const Use& use) {
    if (is_contained({next, static_cast<const Value*>(loop.counter), test}, use.getUser())) return true;
    const auto* phi = dyn_cast<PHINode>(use.getUser());
    return phi && (phi->getParent() == loop.exit ? phi->getIncomingBlock(use) == loop.latch
                                                 : phi->getIncomingBlock(use) == done);
  };
  return test->hasOneUse() && all_of(loop.counter->uses(), counts) && all_of(next->uses(), counts);
}

// Has the counter of such a loop run to zero, which is an instruction less in each iteration than to run to `end`.
void count_to_zero(const CountedLoop& loop, IRBuilder<>& builder, Value* end, ChunkedLoop& cut,
                   BasicBlock* done) {
  Value* next = loop.counter->getIncomingValueForBlock(loop.latch);
  Value* step = ConstantInt::getSigned(end->getType(), loop.step);
  Value* counter_at_end = loop.compared == next ? builder.CreateSub(end, step) : end;
  Value* next_at_end = loop.compared == next ? end : builder.CreateAdd(end, step);
  const auto replace_in = [&](PHINode& phi, BasicBlock* from) {
    Value* value = phi.getIncomingValueForBlock(from);
    if (value == loop.counter) phi.setIncomingValueForBlock(from, counter_at_end);
    if (value == next) phi.setIncomingValueForBlock(from, next_at_end);
  };
  for (PHINode* phi : cut.phis) replace_in(*phi, done);
  for (PHINode& phi : loop.exit->phis()) replace_in(phi, loop.latch);
  // It wraps round to zero now.
  cast<Instruction>(next)->dropPoisonGeneratingFlags();
  for (Value* value : {static_cast<Value*>(loop.counter), next})
    for (DebugUser* user : debug_users_of(*value)) user->setKillLocation();
  Value* now = loop.counter->getIncomingValueForBlock(loop.preheader);
  loop.counter->setIncomingValueForBlock(loop.preheader, builder.CreateSub(now, end));
}

}  // namespace

ChunkedLoop ChunkedLoop::cut(const CountedLoop& loop, Chunk chunk) {
  LLVMContext& context = loop.header->getContext();
  Function* function = loop.header->getParent();
  ChunkedLoop result;
  result.dispatch = BasicBlock::Create(context, "spw.dispatch", function, loop.header);
  BasicBlock* done = BasicBlock::Create(context, "spw.done", function, loop.latch->getNextNode());
  Instruction* latch_end = loop.latch->getTerminator();
  IRBuilder<> builder(result.dispatch);
  builder.SetCurrentDebugLocation(latch_end->getDebugLoc());
  PHINode* now = nullptr;
  for (PHINode& phi : loop.header->phis()) {
    PHINode* state = builder.CreatePHI(phi.getType(), 2, phi.getName());
    state->addIncoming(phi.getIncomingValueForBlock(loop.preheader), loop.preheader);
    state->addIncoming(phi.getIncomingValueForBlock(loop.latch), done);
    result.phis.push_back(state);
    if (&phi == loop.counter) now = state;
  }
  loop.preheader->getTerminator()->replaceSuccessorWith(loop.header, result.dispatch);

  Value* left = loop.distance(builder, now);
  Value* from = first_compared(loop, builder, now);
  Value* way = chunk(builder, result, left);
  if (loop.step < 0) way = builder.CreateNeg(way);
  Value* end = from->getType()->isPointerTy()
                   ? ptr_add(builder, from, way)
                   : builder.CreateAdd(from, builder.CreateTrunc(way, from->getType()), "spw.end");
  for (auto [phi, state] : zip_equal(loop.header->phis(), result.phis))
    phi.setIncomingValueForBlock(loop.preheader, state);
  Value* loop_end = end;
  Value* compared_at_end = loop.compared;
  if (only_counts(loop, done)) {
    count_to_zero(loop, builder, end, result, done);
    loop_end = ConstantInt::get(end->getType(), 0);
    compared_at_end = end;
  }
  for (PHINode& phi : loop.header->phis())
    phi.replaceIncomingBlockWith(loop.preheader, builder.GetInsertBlock());
  builder.CreateBr(loop.header);

  auto* branch = cast<BranchInst>(latch_end);
  auto* test = cast<ICmpInst>(branch->getCondition());
  builder.SetInsertPoint(branch);
  const CmpInst::Predicate stops = CmpInst::getInversePredicate(loop.goes_on);
  const bool goes_on_if_true = branch->getSuccessor(0) == loop.header;
  branch->setCondition(builder.CreateICmp(goes_on_if_true ? loop.goes_on : stops, loop.compared, loop_end));
  branch->replaceSuccessorWith(loop.exit, done);
  if (test->use_empty()) test->eraseFromParent();
  builder.SetInsertPoint(done);
  builder.SetCurrentDebugLocation(branch->getDebugLoc());
  builder.CreateCondBr(builder.CreateICmp(stops, compared_at_end, loop.bound), loop.exit, result.dispatch);
  loop.exit->replacePhiUsesWith(loop.latch, done);
  return result;
}

}  // namespace spw::pass
