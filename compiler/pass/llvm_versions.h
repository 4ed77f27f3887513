// Where the versions of LLVM that the plugin is built for (19, 22) differ: one place for each difference.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

namespace spw::pass {

inline llvm::SCEVExpander make_expander(llvm::ScalarEvolution& evolution,
                                        [[maybe_unused]] const llvm::DataLayout& layout) {
#if LLVM_VERSION_MAJOR >= 22
  return llvm::SCEVExpander(evolution, "spw");
#else
  return llvm::SCEVExpander(evolution, layout, "spw");
#endif
}

inline llvm::SmallVector<llvm::DbgVariableRecord*, 4> debug_records_of(llvm::Value& value) {
  llvm::SmallVector<llvm::DbgVariableRecord*, 4> records;
#if LLVM_VERSION_MAJOR >= 22
  llvm::findDbgUsers(&value, records);
#else
  llvm::SmallVector<llvm::DbgVariableIntrinsic*, 1> calls;
  llvm::findDbgUsers(calls, &value, &records);
#endif
  return records;
}

// Of a masked load, store, gather or scatter whose pointer, or pointers, are that operand: the alignment, and which operand the mask is.
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
