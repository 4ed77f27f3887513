#include "pass/windows.h"

#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

namespace spw::pass {

using namespace llvm;

bool may_translate(const Instruction& instruction) {
  const auto* call = dyn_cast<CallBase>(&instruction);
  if (!call) return false;
  const auto* intrinsic = dyn_cast<IntrinsicInst>(call);
  if (!intrinsic) return true;
  return !intrinsic->isAssumeLikeIntrinsic() && intrinsic->mayReadOrWriteMemory() &&
         intrinsic->getIntrinsicID() != Intrinsic::prefetch;
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

Window Windows::create() {
  Type* word = Type::getInt64Ty(function_.getContext());
  const auto entry = function_.getEntryBlock().getFirstInsertionPt();
  IRBuilder<> builder(&function_.getEntryBlock(), entry);
  Window window{builder.CreateAlloca(word, nullptr, "spw.window"),
                builder.CreateAlloca(word, nullptr, "spw.delta")};
  builder.CreateStore(builder.getInt64(kClosed), window.start);
  builder.CreateStore(builder.getInt64(0), window.delta);
  windows_.push_back(window);
  return window;
}

void Windows::finish() {
  if (windows_.empty()) return;
  for (Instruction& instruction : instructions(function_)) {
    if (!still_may_translate(instruction)) continue;
    IRBuilder<> builder(&instruction);
    for (const Window& window : windows_) builder.CreateStore(builder.getInt64(kClosed), window.start);
  }
  SmallVector<AllocaInst*, 8> variables;
  for (const Window& window : windows_) variables.append({window.start, window.delta});
  DominatorTree tree(function_);
  PromoteMemToReg(variables, tree);
}

}  // namespace spw::pass
