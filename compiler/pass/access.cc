#include "pass/access.h"

#include "abi/abi.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "pass/options.h"

namespace spw::pass {

using namespace llvm;

bool may_cross_granule(uint64_t size_bytes, Align alignment) {
  return size_bytes > std::min<uint64_t>(alignment.value(), SPW_GRANULE_BYTES);
}

bool trusts_alignments() { return opt_trust_alignment || opt_engine == EngineKind::kMapped; }

// The processor itself insists on that of a vector.
static Align certain_alignment(const Type& type, bool is_atomic, Align claimed) {
  return trusts_alignments() || is_atomic || type.isVectorTy() ? claimed : Align(1);
}

std::optional<Access> access_of(Instruction& instruction, const DataLayout& layout) {
  Access access;
  access.instruction = &instruction;
  Type* type = nullptr;
  Align alignment;
  if (auto* load = dyn_cast<LoadInst>(&instruction)) {
    access.pointer_operand = LoadInst::getPointerOperandIndex();
    type = load->getType();
    alignment = certain_alignment(*type, load->isAtomic(), load->getAlign());
  } else if (auto* store = dyn_cast<StoreInst>(&instruction)) {
    access.pointer_operand = StoreInst::getPointerOperandIndex();
    type = store->getValueOperand()->getType();
    alignment = certain_alignment(*type, store->isAtomic(), store->getAlign());
    access.is_store = true;
  } else if (auto* update = dyn_cast<AtomicRMWInst>(&instruction)) {
    access.pointer_operand = AtomicRMWInst::getPointerOperandIndex();
    type = update->getValOperand()->getType();
    alignment = update->getAlign();
    access.is_store = true;
  } else if (auto* exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
    access.pointer_operand = AtomicCmpXchgInst::getPointerOperandIndex();
    type = exchange->getCompareOperand()->getType();
    alignment = exchange->getAlign();
    access.is_store = true;
  } else {
    return std::nullopt;
  }
  if (access.address()->getType()->getPointerAddressSpace() != 0) return std::nullopt;
  const TypeSize size = layout.getTypeStoreSize(type);
  if (size.isScalable() || size.isZero()) return std::nullopt;
  access.size_bytes = size.getFixedValue();
  access.may_cross = may_cross_granule(access.size_bytes, alignment);
  return access;
}

void forget_invariance(Instruction& instruction) {
  instruction.setMetadata(LLVMContext::MD_invariant_load, nullptr);
  instruction.setMetadata(LLVMContext::MD_invariant_group, nullptr);
}

}  // namespace spw::pass
