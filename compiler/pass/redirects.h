// Points calls and references to the external functions of abi/calls.def at the runtime's versions of them.
#pragma once

#include "llvm/IR/Module.h"

namespace spw::pass {

// The number of functions redirected. A function that the module defines itself is left alone.
unsigned redirect_functions(llvm::Module& module);

}  // namespace spw::pass
