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
  MDNode* type = metadata.createTBAAScalarTypeNode("table", metadata.createTBAARoot("Spillway's tables"));
  table_type_ = metadata.createTBAAStructTagNode(type, type, 0);
}

Value* VersionSwitch::is_set(IRBuilder<>& builder) const {
  Value* place = ConstantExpr::getIntToPtr(builder.getInt64(SPW_VERSION_SWITCH), builder.getPtrTy());
  LoadInst* state = load_byte(builder, place, "spw.switch");
  // Or code generation takes it out of loops that store nothing.
  state->setVolatile(true);
  return builder.CreateICmpNE(state, builder.getInt8(0), "spw.switched");
}

LoadInst* VersionSwitch::load_byte(IRBuilder<>& builder, Value* address, const char* name) const {
  LoadInst* load = builder.CreateAlignedLoad(builder.getInt8Ty(), address, Align(1), name);
  load->setMetadata(LLVMContext::MD_tbaa, table_type_);
  load->setMetadata(LLVMContext::MD_nosanitize, MDNode::get(builder.getContext(), {}));
  return load;
}

}  // namespace spw::pass
