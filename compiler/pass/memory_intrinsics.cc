#include "pass/memory_intrinsics.h"

#include "abi/abi.h"
#include "pass/llvm_versions.h"
#include "pass/options.h"

namespace spw::pass {

using namespace llvm;

namespace {

Value* call_runtime(IRBuilder<>& builder, MemIntrinsic& intrinsic, RuntimeSymbols& symbols) {
  if (auto* set = dyn_cast<MemSetInst>(&intrinsic))
    return symbols.call_memset(builder, set->getDest(), set->getValue(), set->getLength());
  if (auto* move = dyn_cast<MemMoveInst>(&intrinsic))
    return symbols.call_memmove(builder, move->getDest(), move->getSource(), move->getLength());
  return symbols.call_memcpy(builder, intrinsic.getDest(), cast<MemTransferInst>(intrinsic).getSource(),
                             intrinsic.getLength());
}

struct Operand {
  unsigned number;
  bool is_store;
};

// Translates a pointer operand of `size_bytes` in front of the call; a range that crosses leaves for `across`.
void translate_pointer(CallBase& call, Operand operand, uint64_t size_bytes, BasicBlock* across,
                       Windows& windows) {
  Value* address = call.getArgOperand(operand.number);
  IRBuilder<> builder(&call);
  Value* bits = builder.CreatePtrToInt(address, builder.getInt64Ty(), "spw.address");
  const Align alignment = trusts_alignments() ? call.getParamAlign(operand.number).valueOrOne() : Align(1);
  const bool may_cross = may_cross_granule(size_bytes, alignment);
  BasicBlock* block = call.getParent();
  BasicBlock* use = block->splitBasicBlock(call.getIterator(), "spw.use");
  block->getTerminator()->eraseFromParent();
  const Translator::Range range{address, bits, size_bytes, may_cross, operand.is_store, true};
  Value* raw = windows.translate(windows.find(address), range, &block, across, call.getDebugLoc());
  builder.SetInsertPoint(block);
  builder.CreateBr(use);
  call.setArgOperand(operand.number, raw);
}

// Leaves `call` in place, on raw pointers. Where a range crosses, what `call_across` writes is called instead.
void translate_inline(CallBase& call, uint64_t size_bytes, ArrayRef<Operand> operands, Translator& translator,
                      Windows& windows, function_ref<Value*(IRBuilder<>&)> call_across) {
  BasicBlock* block = call.getParent();
  BasicBlock* done = block->splitBasicBlock(std::next(call.getIterator()), "spw.done");
  BasicBlock* across = BasicBlock::Create(block->getContext(), "spw.across", &translator.function());
  IRBuilder<> builder(across);
  builder.SetCurrentDebugLocation(call.getDebugLoc());
  Value* result = call_across(builder);
  builder.CreateBr(done);
  for (const Operand operand : operands) translate_pointer(call, operand, size_bytes, across, windows);
  if (pred_empty(across)) {
    across->eraseFromParent();
  } else if (!call.getType()->isVoidTy()) {
    PHINode* both = make_phi(*done, call.getType(), 2, "spw.both");
    call.replaceAllUsesWith(both);
    both->addIncoming(&call, call.getParent());
    both->addIncoming(result, across);
  }
}

}  // namespace

bool instrument_memory_intrinsic(MemIntrinsic& intrinsic, Translator& translator, Windows& windows,
                                 const UnmanagedPointers& unmanaged) {
  auto* transfer = dyn_cast<MemTransferInst>(&intrinsic);
  const bool to_managed = !unmanaged.contains(intrinsic.getDest());
  const bool from_managed = transfer && !unmanaged.contains(transfer->getSource());
  if (!to_managed && !from_managed) return false;
  auto* length = dyn_cast<ConstantInt>(intrinsic.getLength());
  if (length && length->isZero()) return false;
  if (length && length->getZExtValue() <= opt_inline_copy_bytes_max) {
    SmallVector<Operand, 2> operands;
    if (to_managed) operands.push_back({0, true});
    if (from_managed) operands.push_back({1, false});
    translate_inline(
        intrinsic, length->getZExtValue(), operands, translator, windows,
        [&](IRBuilder<>& builder) { return call_runtime(builder, intrinsic, translator.symbols()); });
    return true;
  }
  IRBuilder<> builder(&intrinsic);
  call_runtime(builder, intrinsic, translator.symbols());
  intrinsic.eraseFromParent();
  return true;
}

bool is_small_comparison(const CallBase& call) {
  const Function* callee = call.getCalledFunction();
  if (!callee || !callee->isDeclaration() || call.arg_size() != 3 || isa<InvokeInst>(call)) return false;
  if (callee->getName() != "__spw_memcmp_v1" && callee->getName() != "__spw_bcmp_v1") return false;
  const auto* length = dyn_cast<ConstantInt>(call.getArgOperand(2));
  return length && !length->isZero() && length->getZExtValue() <= opt_inline_copy_bytes_max;
}

void instrument_small_comparison(CallInst& call, Translator& translator, Windows& windows,
                                 const UnmanagedPointers& unmanaged) {
  SmallVector<Operand, 2> operands;
  for (unsigned number : {0u, 1u})
    if (!unmanaged.contains(call.getArgOperand(number))) operands.push_back({number, false});
  const FunctionCallee redirected = call.getCalledFunction();
  const SmallVector<Value*, 3> arguments(call.args());
  // On raw pointers it is the plain function again, which code generation knows and expands.
  const StringRef plain = call.getCalledFunction()->getName() == "__spw_bcmp_v1" ? "bcmp" : "memcmp";
  call.setCalledFunction(call.getModule()->getOrInsertFunction(plain, call.getFunctionType()));
  const uint64_t size_bytes = cast<ConstantInt>(arguments[2])->getZExtValue();
  translate_inline(call, size_bytes, operands, translator, windows,
                   [&](IRBuilder<>& builder) { return builder.CreateCall(redirected, arguments); });
}

}  // namespace spw::pass
