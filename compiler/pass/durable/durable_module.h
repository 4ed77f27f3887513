// Instruments a module for durable sections (abi/durable.h): before the engine's part finds where stores have to be
// announced and marks them, after it writes the code.
//
// Stores, read-modify-writes, compare-and-swaps, memory intrinsics, masked and scattered stores, results of inline
// assembly that go to memory, and calls of library functions that store (library_stores.h); in every function that an
// engine would instrument, where the address may be persistent: what is provably on the stack or in a global variable,
// and so unmanaged, is not persistent either.
//
// Limits: other intrinsics that store, and assembly that stores without
// saying so, are not announced; optimisation remarks name them.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

namespace spw::pass {

void mark_durable_stores(llvm::Module& module, llvm::FunctionAnalysisManager& analyses);
void announce_durable_stores(llvm::Module& module);

}  // namespace spw::pass
