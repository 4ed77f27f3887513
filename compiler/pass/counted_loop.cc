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
  if (!test || !test->isEquality()) return std::nullopt;
  result.exit = branch->getSuccessor(test->getPredicate() == CmpInst::ICMP_EQ ? 0 : 1);
  const BasicBlock* again = branch->getSuccessor(test->getPredicate() == CmpInst::ICMP_EQ ? 1 : 0);
  if (again != result.header || loop.contains(result.exit) || result.exit->isEHPad()) return std::nullopt;
  for (const unsigned operand : {0u, 1u}) {
    result.compared = test->getOperand(operand);
    result.bound = test->getOperand(1 - operand);
    if (!loop.isLoopInvariant(result.bound) || !is_countable_type(result.bound->getType())) continue;
    for (PHINode& phi : result.header->phis()) {
      Value* next = phi.getIncomingValueForBlock(result.latch);
      if (result.compared != &phi && result.compared != next) continue;
      const auto step = step_between(&phi, next);
      if (!step || *step == 0 || *step == INT64_MIN) continue;
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
  return {copy(preheader), copy(header),   copy(latch), copy(exit),
          copy(counter),   copy(compared), copy(bound), step};
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
  if (from->getType()->isPointerTy()) {
    from = builder.CreatePtrToInt(from, builder.getInt64Ty());
    to = builder.CreatePtrToInt(to, builder.getInt64Ty());
  }
  Value* distance = step > 0 ? builder.CreateSub(to, from) : builder.CreateSub(from, to);
  return builder.CreateZExt(distance, builder.getInt64Ty());
}

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
  BasicBlock* last = builder.GetInsertBlock();
  builder.CreateBr(loop.header);
  unsigned index = 0;
  for (PHINode& phi : loop.header->phis()) {
    const int entry = phi.getBasicBlockIndex(loop.preheader);
    phi.setIncomingValue(entry, result.phis[index++]);
    phi.setIncomingBlock(entry, last);
  }

  auto* branch = cast<BranchInst>(latch_end);
  auto* test = cast<ICmpInst>(branch->getCondition());
  builder.SetInsertPoint(branch);
  branch->setCondition(builder.CreateICmp(test->getPredicate(), loop.compared, end));
  branch->replaceSuccessorWith(loop.exit, done);
  if (test->use_empty()) test->eraseFromParent();
  builder.SetInsertPoint(done);
  builder.SetCurrentDebugLocation(branch->getDebugLoc());
  builder.CreateCondBr(builder.CreateICmpEQ(loop.compared, loop.bound), loop.exit, result.dispatch);
  loop.exit->replacePhiUsesWith(loop.latch, done);
  return result;
}

}  // namespace spw::pass
