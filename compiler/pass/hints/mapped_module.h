// Instruments a module for the mapped engine: residency hints (abi/hints.h).
//
// Every load, store, atomic and memory intrinsic whose address may be managed gets a hint before
// it; masked accesses, gathers, scatters, byval arguments and inline assembly get none, a fault
// serves them. No function is redirected: the runtime interposes the allocator for the whole
// process. Most functions get two versions (two_versions.h), and only one of them has hints.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

namespace spw::pass {

void instrument_for_mapped(llvm::Module& module, llvm::FunctionAnalysisManager& analyses);

}  // namespace spw::pass
