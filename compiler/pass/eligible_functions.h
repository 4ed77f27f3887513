// Which functions of a module are instrumented, whatever the engine.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"

namespace spw::pass {

// All with a body, but for what its author excluded, naked functions,
// and ifunc resolvers, which the loader calls before the runtime exists.
llvm::SmallVector<llvm::Function*, 0> eligible_functions(llvm::Module& module);

}  // namespace spw::pass
