#include "pass/hints/two_versions.h"

#include "llvm/IR/EHPersonalities.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace spw::pass {

using namespace llvm;

namespace {

bool can_be_there_twice(const Instruction& instruction) {
  if (isa<IndirectBrInst, CallBrInst>(instruction) || instruction.getType()->isTokenTy()) return false;
  const auto* call = dyn_cast<CallBase>(&instruction);
  if (!call) return true;
  if (call->cannotDuplicate() || call->isConvergent() || call->hasFnAttr(Attribute::ReturnsTwice))
    return false;
  return call->getIntrinsicID() != Intrinsic::localescape;
}

// The entry block keeps the static allocas, which hold their place in the frame there, and what stands before the last.
BasicBlock* split_entry(Function& function) {
  BasicBlock& entry = function.getEntryBlock();
  auto place = entry.getFirstNonPHIOrDbgOrAlloca();
  for (Instruction& instruction : make_early_inc_range(make_range(place, entry.end())))
    if (auto* alloca = dyn_cast<AllocaInst>(&instruction); alloca && alloca->isStaticAlloca())
      alloca->moveBefore(entry, place);
  return entry.splitBasicBlock(place, "spw.hinted");
}

}  // namespace

bool can_have_two_versions(const Function& function) {
  if (function.hasOptNone() || function.isPresplitCoroutine() ||
      function.hasFnAttribute(Attribute::NoDuplicate) || function.callsFunctionThatReturnsTwice())
    return false;
  if (function.hasPersonalityFn() &&
      isScopedEHPersonality(classifyEHPersonality(function.getPersonalityFn())))
    return false;
  for (const BasicBlock& block : function)
    if (block.hasAddressTaken()) return false;
  return all_of(instructions(function), can_be_there_twice);
}

TwoVersions::TwoVersions(Function& function)
    : entry_(&function.getEntryBlock()), hinted_(split_entry(function)) {
  SmallVector<BasicBlock*, 0> body;
  for (BasicBlock& block : function)
    if (&block != entry_) body.push_back(&block);
  SmallVector<BasicBlock*, 0> copies;
  for (BasicBlock* block : body) {
    BasicBlock* copy = CloneBasicBlock(block, plain_of_, ".plain", &function);
    copy->moveBefore(hinted_);
    plain_of_[block] = copy;
    copies.push_back(copy);
  }
  remapInstructionsInBlocks(copies, plain_of_);
}

void TwoVersions::connect(HintWriter& writer) {
  auto* plain = cast<BasicBlock>(plain_of_[hinted_]);
  Instruction* end = entry_->getTerminator();
  IRBuilder<> builder(end);
  builder.CreateCondBr(writer.switch_is_set(builder), hinted_, plain, writer.unlikely());
  end->eraseFromParent();
}

}  // namespace spw::pass
