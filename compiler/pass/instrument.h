// The pass: instruments a module for one of the engines. The mapped one's part is hints/mapped_module.h.
//
// Order within a module, for the translated engine: external functions are redirected, what is unmanaged is found, then
// every function is rewritten: byval arguments, loops, segments, memory intrinsics and masked accesses, and what is
// left one by one. Stores to persistent memory are marked before all that and announced after it
// (durable/durable_module.h). A module is instrumented once; the module flag "spillway" marks it.
#pragma once

#include "llvm/IR/PassManager.h"

namespace spw::pass {

class InstrumentPass : public llvm::PassInfoMixin<InstrumentPass> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  // Also for functions marked optnone: without translations they would be wrong.
  static bool isRequired() { return true; }
};

// Notes the engine, and whether stores are announced, in a module that is instrumented later, by the linker.
class MarkEnginePass : public llvm::PassInfoMixin<MarkEnginePass> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace spw::pass
