// The pass: instruments a module for the translated engine.
//
// Order within a module: what is unmanaged is found first, then every function is rewritten (byval arguments,
// then memory intrinsics and masked accesses, then plain accesses), then external functions are redirected.
// A module is instrumented once; the module flag "spillway" marks it.
#pragma once

#include "llvm/IR/PassManager.h"

namespace spw::pass {

class InstrumentPass : public llvm::PassInfoMixin<InstrumentPass> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  // Also for functions marked optnone: without translations they would be wrong.
  static bool isRequired() { return true; }
};

}  // namespace spw::pass
