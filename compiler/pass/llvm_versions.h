// Where the versions of LLVM that the plugin is built for (16 to 22;
// tested are 16, 19 and 22) differ: one place for each difference.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"
#include "llvm/Transforms/Utils/ValueMapper.h"
#if LLVM_VERSION_MAJOR >= 17
#include "llvm/IR/EHPersonalities.h"
#else
#include "llvm/Analysis/EHPersonalities.h"
#endif

namespace spw::pass {

inline llvm::SCEVExpander make_expander(llvm::ScalarEvolution& evolution,
                                        [[maybe_unused]] const llvm::DataLayout& layout) {
#if LLVM_VERSION_MAJOR >= 22
  return llvm::SCEVExpander(evolution, "spw");
#else
  return llvm::SCEVExpander(evolution, layout, "spw");
#endif
}

#if LLVM_VERSION_MAJOR >= 19
using DebugUser = llvm::DbgVariableRecord;
inline const llvm::Instruction* place_of(DebugUser* user) { return user->getInstruction(); }
#else
using DebugUser = llvm::DbgVariableIntrinsic;
inline const llvm::Instruction* place_of(DebugUser* user) { return user; }
#endif

// What tells debuggers that `value` is a variable's.
inline llvm::SmallVector<DebugUser*, 4> debug_users_of(llvm::Value& value) {
  llvm::SmallVector<DebugUser*, 4> users;
#if LLVM_VERSION_MAJOR >= 22
  llvm::findDbgUsers(&value, users);
#elif LLVM_VERSION_MAJOR >= 19
  llvm::SmallVector<llvm::DbgVariableIntrinsic*, 1> calls;
  llvm::findDbgUsers(calls, &value, &users);
#else
  llvm::findDbgUsers(users, &value);
#endif
  return users;
}

// Before LLVM 19 they were instructions of their own, which are remapped as such.
inline void remap_debug_users([[maybe_unused]] llvm::Instruction& instruction,
                              [[maybe_unused]] llvm::ValueToValueMapTy& copies,
                              [[maybe_unused]] llvm::RemapFlags flags) {
#if LLVM_VERSION_MAJOR >= 19
  llvm::RemapDbgRecordRange(instruction.getModule(), instruction.getDbgRecordRange(), copies, flags);
#endif
}

inline void drop_what_may_be_undefined(llvm::Instruction& instruction) {
#if LLVM_VERSION_MAJOR >= 18
  instruction.dropUBImplyingAttrsAndMetadata();
#else
  instruction.dropUndefImplyingAttrsAndUnknownMetadata();
#endif
  instruction.dropPoisonGeneratingFlags();
}

// IRBuilder has it as CreatePtrAdd since LLVM 18.
inline llvm::Value* ptr_add(llvm::IRBuilder<>& builder, llvm::Value* pointer, llvm::Value* offset,
                            const llvm::Twine& name = "") {
  return builder.CreateGEP(builder.getInt8Ty(), pointer, offset, name);
}

// At the beginning of a block, or of a function's first block. Places
// were instructions before LLVM 19, and are iterators since LLVM 22.
inline llvm::PHINode* make_phi(llvm::BasicBlock& block, llvm::Type* type, unsigned values,
                               const llvm::Twine& name) {
  llvm::IRBuilder<> builder(&block, block.begin());
  builder.SetCurrentDebugLocation(llvm::DebugLoc());
  return builder.CreatePHI(type, values, name);
}

inline llvm::AllocaInst* make_alloca(llvm::Function& function, llvm::Type* type, const llvm::Twine& name,
                                     llvm::MaybeAlign alignment = std::nullopt) {
  llvm::BasicBlock& entry = function.getEntryBlock();
  llvm::IRBuilder<> builder(&entry, entry.getFirstInsertionPt());
  builder.SetCurrentDebugLocation(llvm::DebugLoc());
  llvm::AllocaInst* made = builder.CreateAlloca(type, nullptr, name);
  if (alignment) made->setAlignment(*alignment);
  return made;
}

// Of a masked load, store, gather or scatter whose pointer, or pointers,
// are that operand: the alignment, and which operand the mask is.
struct MaskedOperands {
  llvm::Align alignment;
  unsigned mask;
};
inline MaskedOperands masked_operands(const llvm::IntrinsicInst& call, unsigned pointer) {
#if LLVM_VERSION_MAJOR >= 22
  return {call.getParamAlign(pointer).valueOrOne(), pointer + 1};
#else
  const auto* alignment = llvm::cast<llvm::ConstantInt>(call.getArgOperand(pointer + 1));
  return {alignment->getMaybeAlignValue().valueOrOne(), pointer + 2};
#endif
}

// A string before LLVM 21.
inline llvm::Triple triple_of(const llvm::Module& module) { return llvm::Triple(module.getTargetTriple()); }

}  // namespace spw::pass
