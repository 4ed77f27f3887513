#include "pass/windows.h"

#include "abi/abi.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include "pass/durable/store_marks.h"
#include "pass/llvm_versions.h"

namespace spw::pass {

using namespace llvm;

bool may_translate(const Instruction& instruction) {
  const auto* call = dyn_cast<CallBase>(&instruction);
  if (!call) return false;
  const auto* intrinsic = dyn_cast<IntrinsicInst>(call);
  if (!intrinsic) return !is_store_mark(instruction);
  return !intrinsic->isAssumeLikeIntrinsic() && intrinsic->mayReadOrWriteMemory() &&
         intrinsic->getIntrinsicID() != Intrinsic::prefetch;
}

bool ends_segment(const Instruction& instruction) {
  if (may_translate(instruction)) return true;
  const auto* call = dyn_cast<CallBase>(&instruction);
  return call && (call->isConvergent() || !isGuaranteedToTransferExecutionToSuccessor(call) ||
                  call->getIntrinsicID() == Intrinsic::experimental_noalias_scope_decl);
}

namespace {

// The same of a function that is instrumented: what remains of memory intrinsics and masked accesses has raw addresses.
bool still_may_translate(const Instruction& instruction) {
  if (isa<MemIntrinsic>(instruction)) return false;
  if (const auto* intrinsic = dyn_cast<IntrinsicInst>(&instruction)) {
    const Intrinsic::ID id = intrinsic->getIntrinsicID();
    if (id == Intrinsic::masked_load || id == Intrinsic::masked_store || id == Intrinsic::threadlocal_address)
      return false;
  }
  return may_translate(instruction);
}

}  // namespace

// What stays of an address when constant distances and the phis at loop exits are taken away.
const Value* Windows::pointer_of(const Value* address) {
  constexpr unsigned kStepsMax = 8;
  for (unsigned step = 0; step < kStepsMax; ++step) {
    if (const auto* phi = dyn_cast<PHINode>(address); phi && phi->getNumIncomingValues() == 1)
      address = phi->getIncomingValue(0);
    else if (const auto* element = dyn_cast<GetElementPtrInst>(address);
             element && element->hasAllConstantIndices())
      address = element->getPointerOperand();
    else
      break;
  }
  return address;
}

const Window& Windows::create(const Value* address, Home home) {
  BasicBlock& entry = translator_.function().getEntryBlock();
  IRBuilder<> builder(&entry, entry.getFirstInsertionPt());
  Type* word = builder.getInt64Ty();
  const Window window{builder.CreateAlloca(word, nullptr, "spw.window"),
                      builder.CreateAlloca(word, nullptr, "spw.store_window"),
                      builder.CreateAlloca(builder.getPtrTy(), nullptr, "spw.window_raw"), home};
  builder.CreateStore(builder.getInt64(kClosed), window.start);
  builder.CreateStore(builder.getInt64(kClosed), window.store_start);
  builder.CreateStore(ConstantPointerNull::get(builder.getPtrTy()), window.raw);
  windows_.push_back(window);
  also_for(windows_.back(), address);
  return windows_.back();
}

Value* Windows::translate(const Window* window, const Translator::Range& range, BasicBlock** block,
                          BasicBlock* crossing, const DebugLoc& place) {
  if (window) return translate_through(*window, range, block, crossing, place);
  Value* delta = translator_.translate_range(range, block, crossing, place);
  IRBuilder<> builder(*block);
  builder.SetCurrentDebugLocation(place);
  return ptr_add(builder, range.low, delta, "spw.raw");
}

Value* Windows::translate_through(const Window& window, const Translator::Range& range, BasicBlock** block,
                                  BasicBlock* crossing, const DebugLoc& place) {
  LLVMContext& context = (*block)->getContext();
  BasicBlock* ready =
      BasicBlock::Create(context, "spw.ready", &translator_.function(), (*block)->getNextNode());
  BasicBlock* outside = BasicBlock::Create(context, "spw.outside", &translator_.function(), ready);
  IRBuilder<> builder(*block);
  builder.SetCurrentDebugLocation(place);
  Type* word = builder.getInt64Ty();
  Value* begin = builder.CreateLoad(word, range.is_store ? window.store_start : window.start);
  Value* distance = builder.CreateSub(range.bits, begin);
  Value* inside = builder.CreateICmpULE(distance, builder.getInt64(SPW_GRANULE_BYTES - range.span_bytes));
  Value* known = builder.CreateLoad(builder.getPtrTy(), window.raw);
  builder.CreateCondBr(inside, ready, outside, likely(context));
  BasicBlock* from = *block;

  // Frozen, so that loop strength reduction does not give the cold side induction variables of its own.
  builder.SetInsertPoint(outside);
  Translator::Range cold = range;
  cold.low = builder.CreateFreeze(range.low);
  cold.bits = builder.CreatePtrToInt(cold.low, word);
  *block = outside;
  Value* may_store = nullptr;
  Value* delta = translator_.translate_range(cold, block, crossing, place, &may_store);
  builder.SetInsertPoint(*block);
  Value* within = builder.CreateAnd(cold.bits, builder.getInt64(SPW_GRANULE_BYTES - 1));
  Value* start = builder.CreateSub(cold.bits, within);
  Value* found = builder.CreateIntToPtr(builder.CreateAdd(start, delta), builder.getPtrTy());
  builder.CreateStore(start, window.start);
  builder.CreateStore(builder.CreateSelect(may_store, start, builder.getInt64(kClosed)), window.store_start);
  builder.CreateStore(found, window.raw);
  builder.CreateBr(ready);

  builder.SetInsertPoint(ready);
  PHINode* raw = builder.CreatePHI(builder.getPtrTy(), 2, "spw.window_raw");
  raw->addIncoming(known, from);
  raw->addIncoming(found, *block);
  PHINode* offset = builder.CreatePHI(word, 2, "spw.distance");
  offset->addIncoming(distance, from);
  offset->addIncoming(within, *block);
  *block = ready;
  return ptr_add(builder, raw, offset, "spw.raw");
}

void Windows::close(const Window& window, Instruction& before) {
  IRBuilder<> builder(&before);
  builder.CreateStore(builder.getInt64(kClosed), window.start);
  builder.CreateStore(builder.getInt64(kClosed), window.store_start);
}

SmallVector<BasicBlock*, 0> Windows::region_of(const Window& window) const {
  SmallPtrSet<BasicBlock*, 8> seen;  // the blocks that enter the home are none of it
  for (Instruction* entry : entries_[window.home]) seen.insert(entry->getParent());
  SmallVector<BasicBlock*, 0> region;
  const auto add = [&](BasicBlock* block) {
    if (seen.insert(block).second) region.push_back(block);
  };
  for (AllocaInst* variable : {window.start, window.store_start, window.raw})
    for (User* user : variable->users())
      if (isa<LoadInst>(user)) add(cast<LoadInst>(user)->getParent());
  for (size_t i = 0; i < region.size(); ++i)
    for (BasicBlock* before : predecessors(region[i])) add(before);
  return region;
}

void Windows::finish(function_ref<bool(const BasicBlock&)> is_plain) {
  if (windows_.empty()) return;
  Function& function = translator_.function();
  DenseMap<BasicBlock*, SmallVector<Instruction*, 1>> calls;
  for (Instruction& instruction : instructions(function))
    if (still_may_translate(instruction) && !is_plain(*instruction.getParent()))
      calls[instruction.getParent()].push_back(&instruction);
  SmallVector<AllocaInst*, 8> variables;
  for (const Window& window : windows_) {
    for (Instruction* entry : entries_[window.home]) {
      close(window, *entry);
      IRBuilder<>(entry).CreateStore(PoisonValue::get(window.raw->getAllocatedType()), window.raw);
    }
    for (BasicBlock* block : region_of(window))
      if (const auto found = calls.find(block); found != calls.end())
        for (Instruction* call : found->second) close(window, *call);
    variables.append({window.start, window.store_start, window.raw});
  }
  DominatorTree tree(function);
  PromoteMemToReg(variables, tree);
}

}  // namespace spw::pass
