#include "pass/memory_intrinsics.h"

#include "abi/abi.h"
#include "pass/options.h"

namespace spw::pass {

using namespace llvm;

namespace {

void call_runtime(IRBuilder<>& builder, MemIntrinsic& intrinsic, RuntimeSymbols& symbols) {
  if (auto* set = dyn_cast<MemSetInst>(&intrinsic))
    symbols.call_memset(builder, set->getDest(), set->getValue(), set->getLength());
  else if (auto* move = dyn_cast<MemMoveInst>(&intrinsic))
    symbols.call_memmove(builder, move->getDest(), move->getSource(), move->getLength());
  else
    symbols.call_memcpy(builder, intrinsic.getDest(), cast<MemTransferInst>(intrinsic).getSource(),
                        intrinsic.getLength());
}

// Translates the pointer operand `operand` in front of the intrinsic; a range that crosses leaves for
// `across`.
void translate_pointer(MemIntrinsic& intrinsic, unsigned operand, uint64_t size_bytes, bool is_store,
                       BasicBlock* across, Translator& translator) {
  Value* address = intrinsic.getArgOperand(operand);
  const bool may_cross = may_cross_granule(size_bytes, intrinsic.getParamAlign(operand).valueOrOne());
  const auto probe = translator.probe(&intrinsic, address, size_bytes, may_cross, is_store);
  IRBuilder<> builder(probe.miss);
  builder.SetCurrentDebugLocation(intrinsic.getDebugLoc());
  if (may_cross) {
    BasicBlock* within = BasicBlock::Create(builder.getContext(), "spw.within", &translator.function());
    Value* offset = builder.CreateAnd(builder.CreatePtrToInt(address, builder.getInt64Ty()),
                                      builder.getInt64(SPW_GRANULE_BYTES - 1));
    Value* crosses = builder.CreateICmpUGT(offset, builder.getInt64(SPW_GRANULE_BYTES - size_bytes));
    builder.CreateCondBr(crosses, across, within);
    builder.SetInsertPoint(within);
  }
  // It does not cross, so the runtime need not know of more than the widest access.
  const uint64_t shown = std::min<uint64_t>(size_bytes, SPW_ACCESS_BYTES_MAX);
  Value* raw = is_store ? translator.symbols().call_store(builder, address, shown)
                        : translator.symbols().call_load(builder, address, shown);
  probe.raw->addIncoming(raw, builder.GetInsertBlock());
  builder.CreateBr(probe.use);
  intrinsic.setArgOperand(operand, probe.raw);
}

void translate_inline(MemIntrinsic& intrinsic, uint64_t size_bytes, bool to_managed, bool from_managed,
                      Translator& translator) {
  BasicBlock* block = intrinsic.getParent();
  BasicBlock* done = block->splitBasicBlock(std::next(intrinsic.getIterator()), "spw.done");
  BasicBlock* across = BasicBlock::Create(block->getContext(), "spw.across", &translator.function());
  IRBuilder<> builder(across);
  builder.SetCurrentDebugLocation(intrinsic.getDebugLoc());
  call_runtime(builder, intrinsic, translator.symbols());
  builder.CreateBr(done);
  if (to_managed) translate_pointer(intrinsic, 0, size_bytes, true, across, translator);
  if (from_managed) translate_pointer(intrinsic, 1, size_bytes, false, across, translator);
  if (pred_empty(across)) across->eraseFromParent();
}

}  // namespace

bool instrument_memory_intrinsic(MemIntrinsic& intrinsic, Translator& translator,
                                 const UnmanagedPointers& unmanaged) {
  auto* transfer = dyn_cast<MemTransferInst>(&intrinsic);
  const bool to_managed = !unmanaged.contains(intrinsic.getDest());
  const bool from_managed = transfer && !unmanaged.contains(transfer->getSource());
  if (!to_managed && !from_managed) return false;
  auto* length = dyn_cast<ConstantInt>(intrinsic.getLength());
  if (length && length->isZero()) return false;
  if (length && length->getZExtValue() <= opt_inline_copy_bytes_max) {
    translate_inline(intrinsic, length->getZExtValue(), to_managed, from_managed, translator);
    return true;
  }
  IRBuilder<> builder(&intrinsic);
  call_runtime(builder, intrinsic, translator.symbols());
  intrinsic.eraseFromParent();
  return true;
}

}  // namespace spw::pass
