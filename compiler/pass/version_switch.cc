#include "pass/version_switch.h"

#include "abi/abi.h"
#include "llvm/IR/MDBuilder.h"

namespace spw::pass {

using namespace llvm;

namespace {

constexpr uint32_t kLikelyWeight = 1u << 20;
constexpr uint32_t kRatherLikelyWeight = 64;

}  // namespace

VersionSwitch::VersionSwitch(LLVMContext& context) {
  MDBuilder metadata(context);
  unlikely_ = metadata.createBranchWeights(1, kLikelyWeight);
  rather_unlikely_ = metadata.createBranchWeights(1, kRatherLikelyWeight);
}

Value* VersionSwitch::is_set(IRBuilder<>& builder) const {
  Value* place = ConstantExpr::getIntToPtr(builder.getInt64(SPW_VERSION_SWITCH), builder.getPtrTy());
  LoadInst* state = builder.CreateAlignedLoad(builder.getInt8Ty(), place, Align(1), "spw.switch");
  mark_table_load(*state);
  // Or code generation takes it out of loops that store nothing.
  state->setVolatile(true);
  return builder.CreateICmpNE(state, builder.getInt8(0), "spw.switched");
}

void mark_table_load(LoadInst& load) {
  MDBuilder metadata(load.getContext());
  MDNode* type = metadata.createTBAAScalarTypeNode("table", metadata.createTBAARoot("Spillway's tables"));
  load.setMetadata(LLVMContext::MD_tbaa, metadata.createTBAAStructTagNode(type, type, 0));
  load.setMetadata(LLVMContext::MD_nosanitize, MDNode::get(load.getContext(), {}));
}

}  // namespace spw::pass
